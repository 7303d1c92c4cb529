/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_limit WAY CASE: limits its own memory and then uses what the limit has room for. Prints what came of
 * that, in words that must be the same with and without a profiler.
 *
 *   WAY     setrlimit, setrlimit64, prlimit (pid 0), prlimit64 (its own pid)
 *   CASE    space   512 MiB of address space: 100 MiB of heap, and a stack of 4 MiB
 *           data    150 MiB of data: 100 MiB of heap
 *           thread  the same, while there is another thread
 *           child   a forked child does as in `space`
 *           vfork   a vfork child does so, and the parent allocates after it: nothing must change for that
 *           waits   as in `space`, and then reads a line
 *           raises  as in `space`, and then sends itself SIGUSR1
 *           fill=N  N MiB of data (0: as it is), then blocks of 4 KiB until there is no more: how many KiB
 *           moments each of 1,000 children in a signal handler, at any moment of its allocations
 *           handler a signal handler sets the limit of `space`, thousands of times, while blocks are sampled
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, HEAP_BYTES = 100 * MIB, FRAME_BYTES = 64 << 10, FRAMES = 64 };

static const char *way;
static volatile sig_atomic_t limited;

/* Blocks of this function are what the test counts. */
__attribute__((noinline)) void *hold(size_t bytes)
{
	void *volatile block = malloc(bytes);
	return block;
}

static int set(int resource, unsigned long long bytes)
{
	const struct rlimit limit = {bytes, bytes};
	const struct rlimit64 limit64 = {bytes, bytes};
	struct rlimit64 before;

	errno = 77;
	if (strcmp(way, "setrlimit") == 0)
		return setrlimit(resource, &limit);
	if (strcmp(way, "setrlimit64") == 0)
		return setrlimit64(resource, &limit64);
	if (strcmp(way, "prlimit") == 0)
		return prlimit(0, resource, &limit, NULL);
	return prlimit64(getpid(), resource, &limit64, &before) || before.rlim_cur != RLIM64_INFINITY;
}

__attribute__((noinline)) static int deep(int frames)
{
	volatile char bytes[FRAME_BYTES];

	bytes[0] = (char)frames;
	return frames ? deep(frames - 1) + bytes[0] - bytes[0] : 1;
}

static int use(void)
{
	char *block = hold(HEAP_BYTES);
	const int got = block != NULL;

	if (block)
		memset(block, 1, HEAP_BYTES);
	free(block);
	return got;
}

static void limit_and_use(int resource, unsigned long long bytes)
{
	const int result = set(resource, bytes);

	printf("result %d %d\n", result, errno);
	printf("heap %d\n", use());
	printf("stack %d\n", deep(FRAMES));
	fflush(stdout);
}

static void fill(unsigned long long limit)
{
	unsigned long kib = 0;

	if (limit && set(RLIMIT_DATA, limit * MIB) != 0)
		exit(6);
	while (hold(4080))
		kib += 4;
	printf("%lu\n", kib);
}

static void *wait_for(void *argument)
{
	pthread_mutex_lock(argument);
	pthread_mutex_unlock(argument);
	return NULL;
}

static void with_thread(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	if (pthread_create(&thread, NULL, wait_for, &mutex) != 0)
		exit(3);
	limit_and_use(RLIMIT_DATA, 150ull * MIB);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
}

static void in_child(pid_t child)
{
	int status = -1;

	if (child == 0) {
		limit_and_use(RLIMIT_AS, 512ull * MIB);
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("status %d\n", status);
}

static void in_vfork_child(void)
{
	int status = -1;
	const pid_t child = vfork();

	if (child == 0)
		_exit(set(RLIMIT_AS, 512ull * MIB) != 0);
	waitpid(child, &status, 0);
	printf("status %d\n", status);
	for (int i = 0; i < 100; i++)
		if (!hold(1000))
			exit(4);
}

static void on_alarm(int number)
{
	const int saved = errno;

	(void)number;
	if (set(RLIMIT_AS, 512ull * MIB) != 0)
		_exit(5);
	limited++;
	errno = saved;
}

/* The first comes while blocks are sampled and freed, as all the others do: inside of a hook mostly. */
static void in_handler(void)
{
	const struct itimerval often = {{0, 200}, {0, 200}};
	const struct itimerval never = {{0, 0}, {0, 0}};

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	while (limited < 200)
		for (int i = 0; i < 100; i++)
			free(hold(1000));
	setitimer(ITIMER_REAL, &never, NULL);
	limit_and_use(RLIMIT_AS, 512ull * MIB);
}

static void on_moment(int number)
{
	(void)number;
	limited = set(RLIMIT_AS, 64ull * MIB) == 0 && set(RLIMIT_DATA, 4ull * MIB) == 0 ? 1 : 2;
}

/* Between any two instructions of malloc and free: most are in none that is sampled. */
static int be_limited_after(int us)
{
	const struct itimerval then = {{0, 0}, {0, us}};
	void *blocks[64] = {NULL};

	signal(SIGALRM, on_moment);
	setitimer(ITIMER_REAL, &then, NULL);
	for (int after = 0; after < 100; after += limited != 0)
		for (int i = 0; i < 64; i++) {
			free(blocks[i]);
			blocks[i] = hold(16 + (size_t)i);
		}
	return limited != 1;
}

static void at_many_moments(void)
{
	int ended = 0;

	for (int i = 0; i < 1000; i++) {
		int status = -1;
		const pid_t child = fork();

		if (child == 0)
			_exit(be_limited_after(50 + i % 700));
		ended += waitpid(child, &status, 0) == child && status == 0;
	}
	printf("ended well %d\n", ended);
}

int main(int argc, char *argv[])
{
	if (argc != 3)
		return 2;
	way = argv[1];
	void *volatile block = hold(1000);
	if (strcmp(argv[2], "space") == 0)
		limit_and_use(RLIMIT_AS, 512ull * MIB);
	else if (strcmp(argv[2], "waits") == 0) {
		limit_and_use(RLIMIT_AS, 512ull * MIB);
		getchar();
	} else if (strcmp(argv[2], "raises") == 0) {
		limit_and_use(RLIMIT_AS, 512ull * MIB);
		raise(SIGUSR1);
	} else if (strcmp(argv[2], "data") == 0)
		limit_and_use(RLIMIT_DATA, 150ull * MIB);
	else if (strcmp(argv[2], "thread") == 0)
		with_thread();
	else if (strcmp(argv[2], "child") == 0)
		in_child(fork());
	else if (strcmp(argv[2], "vfork") == 0)
		in_vfork_child();
	else if (strcmp(argv[2], "moments") == 0)
		at_many_moments();
	else if (strncmp(argv[2], "fill=", 5) == 0)
		fill(strtoull(argv[2] + 5, NULL, 10));
	else if (strcmp(argv[2], "handler") == 0)
		in_handler();
	else
		return 2;
	free(block);
	return 0;
}
