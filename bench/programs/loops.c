/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops KIND THREADS PAIRS [live=N] [churn=N] [heap=BYTES] [deep=N]: malloc and free, nothing between.
 *
 *   batch      1000 live blocks of 16..4096 B per thread, replaced in random order
 *   small      the same with 16..256 B
 *   pingpong   64 B, freed at once
 *   cross      every other thread allocates, its neighbour frees; they hand over 512 blocks at a time
 *   pipe       every other thread sends a byte through a pipe and gets one back, with 64 B allocated for it:
 *              two context switches a pair
 *   storm      32 KiB, filled, read and freed: 1 to 2 GB/s
 *
 * Before the loop that is measured: N blocks of 1 KiB that stay (live), N that come and go (churn), all of
 * them samples: the period in the shared header is 64 bytes for as long, changed as the sampler may do it;
 * BYTES in blocks of 100 KiB that stay (heap); below N frames (deep). Prints the nanoseconds of time and of
 * CPU per pair. PAIRS is for all threads together.
 */
#include "proto/region.h"

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LIVE = 1000, HALF = 512, THREADS_MAX = 512 };

static uint64_t pairs_each;
static unsigned int deep;

/* Waiting sleeps: a loop that spins would count the scheduler's moods as CPU time of malloc and free. */
struct belt {
	void *blocks[2][HALF];
	sem_t empty, full;
	int there[2], back[2];
};

static struct belt *belts;
static pthread_barrier_t together;

static inline uint32_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

/* Blocks must be seen to be used, or the compiler leaves out the pair. */
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

static void run_batch(uint64_t seed, uint32_t mask)
{
	void *live[LIVE] = {0};

	for (uint64_t i = 0; i < pairs_each; i++) {
		uint32_t random = next(&seed);
		void **slot = &live[(uint64_t)(random & 0xffff) * LIVE >> 16];

		free(*slot);
		*slot = malloc(16 + (random >> 16 & mask));
		USE(*slot);
	}
	/* How many of 64 threads are alive at once would be the scheduler's mood, and the peak RSS with it.
	 * */
	pthread_barrier_wait(&together);
	for (int i = 0; i < LIVE; i++)
		free(live[i]);
}

static void run_pingpong(size_t size)
{
	for (uint64_t i = 0; i < pairs_each; i++) {
		void *block = malloc(size);

		USE(block);
		free(block);
	}
}

static void run_storm(uint64_t seed)
{
	enum { WORDS = (32 << 10) / sizeof(uint32_t) };
	uint32_t hash = (uint32_t)seed;

	for (uint64_t i = 0; i < pairs_each; i++) {
		uint32_t *block = malloc(WORDS * sizeof(*block));

		memset(block, (int)i, WORDS * sizeof(*block));
		USE(block);
		for (int k = 0; k < WORDS; k++)
			hash = (hash ^ block[k]) * 16777619u;
		free(block);
	}
	USE(hash);
}

static void run_put(struct belt *belt)
{
	for (uint64_t i = 0; i < pairs_each; i++) {
		if (i % HALF == 0)
			while (sem_wait(&belt->empty))
				;
		belt->blocks[i / HALF % 2][i % HALF] = malloc(64);
		if (i % HALF == HALF - 1 || i + 1 == pairs_each)
			sem_post(&belt->full);
	}
}

static void run_take(struct belt *belt)
{
	for (uint64_t i = 0; i < pairs_each; i++) {
		if (i % HALF == 0)
			while (sem_wait(&belt->full))
				;
		free(belt->blocks[i / HALF % 2][i % HALF]);
		if (i % HALF == HALF - 1)
			sem_post(&belt->empty);
	}
}

static void run_pipe(int in, int out, int first)
{
	char byte = 0;

	if (first && write(out, &byte, 1) != 1)
		abort();
	for (uint64_t i = 0; i < pairs_each; i++) {
		void *block = malloc(64);

		USE(block);
		free(block);
		/* The one who began reads last. */
		if (read(in, &byte, 1) != 1 || ((!first || i + 1 < pairs_each) && write(out, &byte, 1) != 1))
			abort();
	}
}

static const char *kind;

static __attribute__((noinline)) void run(unsigned int thread, unsigned int depth)
{
	volatile char frame[64];

	frame[0] = (char)depth;
	if (depth)
		run(thread, depth - 1);
	else if (!strcmp(kind, "batch"))
		run_batch(thread + 1, 4095);
	else if (!strcmp(kind, "small"))
		run_batch(thread + 1, 255);
	else if (!strcmp(kind, "pingpong"))
		run_pingpong(64);
	else if (!strcmp(kind, "storm"))
		run_storm(thread + 1);
	else if (!strcmp(kind, "pipe") && thread % 2)
		run_pipe(belts[thread / 2].there[0], belts[thread / 2].back[1], 0);
	else if (!strcmp(kind, "pipe"))
		run_pipe(belts[thread / 2].back[0], belts[thread / 2].there[1], 1);
	else if (thread % 2)
		run_take(&belts[thread / 2]);
	else
		run_put(&belts[thread / 2]);
	frame[1] = 0;
}

static void *start(void *argument)
{
	run((unsigned int)(uintptr_t)argument, deep);
	return NULL;
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct region_header *find_header(void)
{
	char line[4352];
	uintptr_t start = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && !start && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:heaptap") && sscanf(line, "%" SCNxPTR, &start) != 1)
			start = 0;
	if (maps)
		fclose(maps);
	return (struct region_header *)start;
}

static void take_and_free(size_t size)
{
	void *block = malloc(size);

	USE(block);
	free(block);
}

static void prepare_samples(uint64_t live, uint64_t churn)
{
	struct region_header *header = live + churn > 1 ? find_header() : NULL;
	uint64_t period = header ? atomic_exchange(&header->period_bytes, 64) : 0;

	for (int i = 0; header && i < 16; i++)
		take_and_free(1 << 20); /* ends the interval under way */
	for (uint64_t i = 0; i < churn; i++)
		take_and_free(1024);
	for (uint64_t i = 0; i < live; i++)
		USE(malloc(1024));
	if (header)
		atomic_store(&header->period_bytes, period);
	take_and_free(1 << 20);
}

static void prepare_heap(uint64_t heap)
{
	for (uint64_t i = 0; i < heap / 102400; i++)
		USE(malloc(102400));
}

int main(int argc, char *argv[])
{
	uint64_t live = 0, churn = 0, heap = 0;
	unsigned int threads = argc > 3 ? (unsigned int)atoi(argv[2]) : 0;

	if (threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr, "usage: loops KIND THREADS PAIRS [live=N] [churn=N] [heap=BYTES] [deep=N]\n");
		return 2;
	}
	kind = argv[1];
	pairs_each = strtoull(argv[3], NULL, 10) / threads;
	for (int i = 4; i < argc; i++) {
		unsigned long n = 0;

		if (sscanf(argv[i], "live=%lu", &n) == 1)
			live = n;
		else if (sscanf(argv[i], "churn=%lu", &n) == 1)
			churn = n;
		else if (sscanf(argv[i], "heap=%lu", &n) == 1)
			heap = n;
		else if (sscanf(argv[i], "deep=%lu", &n) == 1)
			deep = (unsigned int)n;
	}
	const int by_two = !strcmp(kind, "cross") || !strcmp(kind, "pipe");
	if (by_two)
		pairs_each *= 2; /* a pair takes two threads */
	belts = mmap(NULL, sizeof(*belts) * (threads / 2 + 1), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (belts == MAP_FAILED || pthread_barrier_init(&together, NULL, threads))
		return 1;
	for (unsigned int i = 0; i < threads / 2 + 1 && !strcmp(kind, "pipe"); i++)
		if (pipe(belts[i].there) || pipe(belts[i].back))
			return 1;
	for (unsigned int i = 0; i < threads / 2 + 1; i++)
		if (sem_init(&belts[i].empty, 0, 2) || sem_init(&belts[i].full, 0, 0))
			return 1;
	prepare_samples(live, churn);
	prepare_heap(heap);

	pthread_t others[THREADS_MAX];
	uint64_t began = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned int i = 1; i < threads; i++)
		if (pthread_create(&others[i], NULL, start, (void *)(uintptr_t)i))
			return 1;
	run(0, deep);
	for (unsigned int i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	double pairs = (double)(pairs_each * threads) / (by_two ? 2 : 1);
	printf("%.3f %.3f\n", (double)(now(CLOCK_MONOTONIC) - began) / pairs,
	    (double)(now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / pairs);
	return 0;
}
