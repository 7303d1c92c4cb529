/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that never rests: THREADS threads allocate, fill, check, move and free blocks; one loads and
 * unloads libraries, one forks children that do the same. Attached to and detached from, it must not notice.
 *
 *     attach_busy THREADS [still|spin]    until SIGTERM; then it checks every block, and exits with 0 if all
 *                                         is well
 *
 * still: the threads wait in poll between rounds (a service at little load). spin: those that load and fork
 * do not pause either.
 */
/* build: -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 512 };

static atomic_int stop, faults;
static atomic_long rounds[64];
static int still, spin;

static void fault(const char *what)
{
	fprintf(stderr, "attach_busy: %s\n", what);
	faults++;
}

struct block {
	unsigned char *bytes;
	size_t size;
	unsigned char fill;
};

static void check(const struct block *block)
{
	for (size_t i = 0; i < block->size; i++)
		if (block->bytes[i] != block->fill) {
			fault("a block has other bytes than were written");
			return;
		}
}

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void change(struct block *block, uint32_t *random)
{
	double before = (double)next(random) / 3.0, after = before;
	size_t size = 1 + next(random) % (next(random) % 64 ? 512 : 65536);

	check(block);
	if (block->bytes && next(random) % 3 == 0) {
		block->bytes = realloc(block->bytes, size);
		if (size > block->size)
			memset(block->bytes + block->size, block->fill, size - block->size);
	} else {
		free(block->bytes);
		block->bytes = next(random) % 4 ? malloc(size) : calloc(1, size);
		block->fill = (unsigned char)next(random);
		memset(block->bytes, block->fill, size);
	}
	block->size = size;
	if (!block->bytes || before != after)
		fault("no memory, or the registers changed");
}

static void *work(void *argument)
{
	static __thread struct block blocks[SLOTS];
	uint32_t random = 1 + (uint32_t)(uintptr_t)argument;
	while (!stop) {
		for (int i = 0; i < 64; i++)
			change(&blocks[next(&random) % SLOTS], &random);
		rounds[(uintptr_t)argument % 64]++;
		errno = 7;
		if (still && poll(NULL, 0, 5) != 0)
			fault("poll did not wait for its time");
		if (errno != 7)
			fault("errno changed");
	}
	for (int i = 0; i < SLOTS; i++) {
		check(&blocks[i]);
		free(blocks[i].bytes);
	}
	return NULL;
}

static void *load(void *argument)
{
	while (!stop) {
		void *library = dlopen("libutil.so.1", RTLD_LAZY), *math = dlopen("libz.so.1", RTLD_NOW);

		if (math && !dlsym(math, "crc32"))
			fault("no crc32 in libz");
		if (math)
			dlclose(math);
		if (library)
			dlclose(library);
		rounds[(uintptr_t)argument % 64]++;
		if (!spin)
			usleep(still ? 5000 : 100);
	}
	return NULL;
}

static void *breed(void *argument)
{
	while (!stop) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			void *block = malloc(1000);

			free(malloc(50));
			free(block);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			fault("a forked child did not end well");
		rounds[(uintptr_t)argument % 64]++;
		if (!spin)
			usleep(still ? 5000 : 100);
	}
	return NULL;
}

static void on_term(int number)
{
	stop = number;
}

int main(int argc, char *argv[])
{
	struct sigaction action = {.sa_handler = on_term, .sa_flags = SA_RESTART};
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	pthread_t thread[64];

	still = argc > 2 && strcmp(argv[2], "still") == 0;
	spin = argc > 2 && strcmp(argv[2], "spin") == 0;
	sigaction(SIGTERM, &action, NULL);
	for (int i = 0; i < threads && i < 62; i++)
		pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i);
	pthread_create(&thread[threads], NULL, load, (void *)(uintptr_t)threads);
	pthread_create(&thread[threads + 1], NULL, breed, (void *)(uintptr_t)(threads + 1));
	puts("ready");
	fflush(stdout);
	long least = 0;
	for (int i = 0; i < threads + 2; i++) {
		pthread_join(thread[i], NULL);
		least = i == 0 || rounds[i] < least ? rounds[i] : least;
	}
	printf("rounds %ld faults %d\n", least, (int)faults);
	return faults || !least ? EXIT_FAILURE : EXIT_SUCCESS;
}
