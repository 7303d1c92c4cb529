/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all */
/*
 * Programs that something happens to. What they have allocated is known outside, in FILE, whenever they end:
 * three numbers of 64 bits, bytes in use, bytes ever, and steps done.
 *
 *   capture_survive load FILE SECONDS THREADS   allocates and frees, 4 MB per thread in use; until FILE.end
 *                                               exists
 *   capture_survive grow FILE                   allocates and touches without end
 *   capture_survive burst FILE PAIRS KEEP       when FILE.go exists: PAIRS allocations of which KEEP stay;
 *                                               makes FILE.done with the ns it took, ends when FILE.end
 *                                               exists
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct truth {
	_Atomic long inuse, bytes, steps;
};
static struct truth *truth;
static time_t deadline;

__attribute__((noinline, noclone)) void *take(size_t size)
{
	void *block = malloc(size);

	if (!block)
		_exit(9);
	truth->inuse += (long)size;
	truth->bytes += (long)size;
	return block;
}

static void drop(void *block, size_t size)
{
	free(block);
	truth->inuse -= (long)size;
}

enum { HELD = 2000 };

static const char *file;

static int ended(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.end", file);
	return time(NULL) >= deadline || access(path, F_OK) == 0;
}

static void *load(void *argument)
{
	unsigned long random = (unsigned long)argument * 0x9e3779b97f4a7c15u + 1;
	void **held =
	    mmap(NULL, HELD * sizeof(void *), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t *sizes =
	    mmap(NULL, HELD * sizeof(size_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (long i = 0; i % 1024 || !ended(); i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		size_t n = (random >> 33) % HELD;
		if (held[n]) {
			for (size_t b = 0; b < sizes[n]; b += 509)
				if (((unsigned char *)held[n])[b] != (unsigned char)(sizes[n] + b))
					_exit(8);
			drop(held[n], sizes[n]);
		}
		sizes[n] = 1 + (random >> 20) % 4096;
		held[n] = take(sizes[n]);
		for (size_t b = 0; b < sizes[n]; b += 509)
			((unsigned char *)held[n])[b] = (unsigned char)(sizes[n] + b);
		truth->steps++;
	}
	return NULL;
}

static void await(const char *suffix)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", file, suffix);
	while (access(path, F_OK) != 0)
		usleep(2000);
}

static int burst(long pairs, long keep)
{
	struct timespec from, to;
	char path[4096], text[64];

	await(".go");
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (long i = 0; i < pairs; i++) {
		void *block = take(200);

		if (i >= keep)
			drop(block, 200);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	snprintf(path, sizeof(path), "%s.done", file);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int length = snprintf(text, sizeof(text), "%ld\n",
	    (long)((to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec));
	if (write(fd, text, (size_t)length) != length)
		return 1;
	close(fd);
	await(".end");
	return 0;
}

int main(int argc, char *argv[])
{
	if (argc < 3)
		return 2;
	file = argv[2];
	int fd = open(file, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096) != 0)
		return 2;
	truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (strcmp(argv[1], "burst") == 0)
		return burst(atol(argv[3]), atol(argv[4]));
	while (strcmp(argv[1], "grow") == 0)
		memset(take(10000), 1, 10000);
	int threads = atoi(argv[4]);
	pthread_t others[64];
	deadline = time(NULL) + atoi(argv[3]);
	for (long i = 1; i < threads; i++)
		pthread_create(&others[i], NULL, load, (void *)i);
	load(NULL);
	for (int i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	return 0;
}
