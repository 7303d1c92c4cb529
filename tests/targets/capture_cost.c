/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all */
/*
 * What a malloc and its free cost: prints ns per pair, best of many short runs (the machine is shared).
 *
 *   capture_cost pair PAIRS THREADS LIVE     LIVE: samples that are live meanwhile
 *   capture_cost sample PAIRS THREADS [LIVE trigger]   every allocation is one (use period 1): ns per sampled
 *                                                      pair, once
 *                                            somebody listens at the trigger
 *   capture_cost random PAIRS THREADS LIVE   pairs at random places of 200,000 live blocks
 *   capture_cost count PAIRS                 nothing but PAIRS pairs, for an instruction counter
 *   capture_cost memory BLOCKS               resident KiB once so many blocks of 4 KiB are live
 *
 * For LIVE it changes the period in the shared header for a while, as the sampler may: without a session it
 * is ignored.
 */
#include "proto/region.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 8, ROUNDS = 25, OBJECTS = 200000 };
static long pairs;
static int at_random;
static pthread_barrier_t barrier;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct region_header *find_header(void)
{
	char line[4352];
	unsigned long start = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && !start && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:heaptap") && sscanf(line, "%lx", &start) != 1)
			start = 0;
	if (maps)
		fclose(maps);
	return (struct region_header *)start;
}

static void make_live(long live)
{
	struct region_header *header = find_header();

	if (!header || !live)
		return;
	unsigned long period = header->period_bytes;
	header->period_bytes = 32;
	for (long left = 40 * (1 << 20); left > 0 && header->period_bytes != period; left -= 4096)
		free(malloc(4096)); /* until the interval under way has ended */
	for (long i = 0; i < live; i++)
		(void)!malloc(512);
	header->period_bytes = period;
	free(malloc(1 << 20)); /* ends a short interval */
	free(malloc(1 << 20));
}

/* Until the sampler has opened its events, samples go by the copy backend. Not for ever: the backend may not
 * be had. */
static void wait_for_trigger(void)
{
	struct region_header *header = find_header();

	for (int i = 0; header && header->mode != REGION_MODE_TRIGGER && i < 1000; i++)
		usleep(10000);
}

static double small_batch(long count)
{
	void *blocks[BATCH];
	double start = now_ns();

	for (long i = 0; i < count / BATCH; i++) {
		for (int n = 0; n < BATCH; n++)
			blocks[n] = malloc(16 + (size_t)n * 24);
		for (int n = 0; n < BATCH; n++)
			free(blocks[n]);
	}
	return now_ns() - start;
}

static double random_places(long count, void **objects, unsigned long *random)
{
	double start = now_ns();

	for (long i = 0; i < count; i++) {
		*random = *random * 6364136223846793005ul + 1442695040888963407ul;
		void **object = &objects[(*random >> 33) % OBJECTS];
		free(*object);
		*object = malloc(16 + (*random >> 20) % 500);
	}
	return now_ns() - start;
}

/* From smaps_rollup: statm lags behind by up to 63 pages for each processor. */
static int system_memory(void)
{
	char line[256];
	long kib = 0;
	FILE *rollup = fopen("/proc/self/smaps_rollup", "r");

	while (rollup && fgets(line, sizeof(line), rollup))
		if (sscanf(line, "Rss: %ld", &kib) == 1)
			break;
	printf("%ld\n", kib);
	return kib == 0;
}

static void *work(void *argument)
{
	double *best = argument;
	unsigned long random = (unsigned long)argument;
	void **objects = at_random ? calloc(OBJECTS, sizeof(*objects)) : NULL;

	*best = 1e18;
	if (at_random)
		random_places(OBJECTS * 2, objects, &random);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		double taken = at_random ? random_places(pairs, objects, &random) : small_batch(pairs);
		*best = taken < *best ? taken : *best;
	}
	return NULL;
}

int main(int argc, char *argv[])
{
	if (argc < 3)
		return 2;
	pairs = atol(argv[2]);
	if (strcmp(argv[1], "memory") == 0) {
		for (long i = 0; i < pairs; i++)
			memset(malloc(4000), 1, 4000);
		return system_memory();
	}
	if (strcmp(argv[1], "count") == 0) {
		small_batch(pairs);
		_exit(0);
	}
	int threads = argc > 3 ? atoi(argv[3]) : 1;
	pthread_t others[64];
	double best[64], sum = 0;
	at_random = strcmp(argv[1], "random") == 0;
	make_live(argc > 4 ? atol(argv[4]) : 0);
	if (argc > 5)
		wait_for_trigger();
	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (int i = 1; i < threads; i++)
		pthread_create(&others[i], NULL, work, &best[i]);
	work(&best[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	for (int i = 0; i < threads; i++)
		sum += best[i];
	printf("%.2f\n", sum / threads / (double)pairs);
	return 0;
}
