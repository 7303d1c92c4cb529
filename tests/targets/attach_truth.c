/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows what it allocates after somebody has attached to it.
 *
 *     attach_truth THREADS MODULE
 *
 * It allocates something, makes THREADS threads, and says "ready"; at each line on its standard input it
 * works and says "done"; it ends at the end of the input. One round of work:
 *
 *     old_frees      100 blocks from before are freed
 *     thread_work    by each of the threads that were there: 500 blocks of 300 bytes, half of which are freed
 *     new_thread     a new thread: 400 blocks of 70 bytes
 *     main_grow      realloc: a block of 10,000 bytes becomes one of 50,000
 *     module_alloc   in MODULE, which is loaded now: 200 blocks of 1,000 bytes
 *     child_work     in a forked child, which waits for a line of its own: 50 blocks of 2,000 bytes
 */
/* build: -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t begin, end;
static void *before[1000], *volatile kept[64][500], *volatile young[400], *volatile of_child[50],
                                                                              *volatile of_module[200];
static int freed;

__attribute__((noinline)) static void thread_work(void *volatile *blocks)
{
	for (int i = 0; i < 500; i++)
		blocks[i] = malloc(300);
	for (int i = 0; i < 250; i++)
		free(blocks[i]);
}

static void *thread_main(void *blocks)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		thread_work(blocks);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

__attribute__((noinline)) static void *new_thread(void *argument)
{
	for (int i = 0; i < 400; i++)
		young[i] = malloc(70);
	return argument;
}

__attribute__((noinline)) static void old_frees(void)
{
	for (int i = 0; i < 100; i++)
		free(before[freed++]);
}

__attribute__((noinline)) static void main_grow(void)
{
	static void *volatile block;
	block = malloc(10000);
	block = realloc(block, 50000);
}

__attribute__((noinline)) static void child_work(void)
{
	for (int i = 0; i < 50; i++)
		of_child[i] = malloc(2000);
}

static void use_module(const char *path)
{
	void *module = dlopen(path, RTLD_NOW);
	void *(*alloc)(size_t) = module ? (void *(*)(size_t))dlsym(module, "module_alloc") : NULL;

	if (!alloc)
		_exit(3);
	for (int i = 0; i < 200; i++)
		of_module[i] = alloc(1000);
}

static int work(const char *module)
{
	pthread_t thread;
	int status;

	old_frees();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	pthread_create(&thread, NULL, new_thread, NULL);
	pthread_join(thread, NULL);
	main_grow();
	use_module(module);
	pid_t child = fork();
	if (child == 0) {
		child_work();
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 4;
}

int main(int argc, char *argv[])
{
	int threads = atoi(argv[1]), bad = 0;
	char line[16];

	if (argc != 3 || threads > 64)
		return 2;
	for (int i = 0; i < 1000; i++)
		before[i] = malloc(4000);
	pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, thread_main, (void *)kept[i]);
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (!bad && read(0, line, 1) == 1) {
		bad = work(argv[2]);
		puts("done");
	}
	return bad;
}
