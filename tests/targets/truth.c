/* SPDX-License-Identifier: Apache-2.0 */
/*
 * truth FILE ROUNDS PACE_US [THREADS [wait]]: allocates through named functions, known sizes a known number
 * of times, frees a known part, and writes to FILE, tab-separated, what every profiler should have seen:
 *
 *     function  alloc_objects  alloc_bytes  inuse_objects  inuse_bytes  size:allocs:inuse,...
 *
 * wait: says "ready" and waits for a line on standard input first; what these two take is in no table.
 * PACE_US is slept after every 32 allocations, so that a profiler at period 1 is not simply flooded. Its own
 * tables are static: nothing else is allocated until the truth is written.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZES         8
#define THREADS       16
#define NAMED         __attribute__((noinline, noclone))
/* Keeps a call from becoming a tail call, which would hide the function that we are about. */
#define STAY(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

static NAMED void *take_one_byte(size_t size)
{
	void *block = malloc(size);

	STAY(block);
	return block;
}

static NAMED void *take_small(size_t size)
{
	void *block = malloc(size);

	STAY(block);
	return block;
}

static NAMED void *take_zeroed(size_t size)
{
	void *block = calloc(size / 10, 10);

	STAY(block);
	return block;
}

static NAMED void *take_pages(size_t size)
{
	void *block = malloc(size);

	STAY(block);
	return block;
}

static NAMED void *take_aligned(size_t size)
{
	void *block = NULL;

	if (posix_memalign(&block, 64, size))
		abort();
	STAY(block);
	return block;
}

static NAMED void *take_memalign(size_t size)
{
	void *block = memalign(256, size);

	STAY(block);
	return block;
}

static NAMED void *take_array(size_t size)
{
	void *block = reallocarray(NULL, size / 4, 4);

	STAY(block);
	return block;
}

static NAMED void *take_large(size_t size)
{
	void *block = malloc(size);

	STAY(block);
	return block;
}

static NAMED void *take_temporary(size_t size)
{
	void *block = malloc(size);

	STAY(block);
	return block;
}

static NAMED void *start_growth(size_t size)
{
	void *block = malloc(size);

	STAY(block);
	return block;
}

static NAMED void *grow(void *old, size_t size)
{
	void *block = realloc(old, size);

	STAY(block);
	return block;
}

struct site {
	const char *name;
	void *(*take)(size_t size);
	unsigned int times;      /* per round */
	unsigned int keep_every; /* one in so many stays allocated; 0: none */
	size_t sizes[SIZES];     /* up to the first 0 */
};

enum { GROWTH_START, GROWTH, PLAIN };

static const struct site sites[] = {
    [GROWTH_START] = {"start_growth", start_growth, 4, 0, {40}},
    [GROWTH] = {"grow", NULL, 0, 0, {100, 1000, 10000, 100000}},
    {"take_one_byte", take_one_byte, 16, 4, {1}},
    {"take_small", take_small, 64, 8, {16, 24, 40, 64, 100, 250, 333, 500}},
    {"take_zeroed", take_zeroed, 16, 4, {100, 1000, 20000}},
    {"take_pages", take_pages, 8, 8, {4096, 8192, 65536}},
    {"take_aligned", take_aligned, 4, 4, {1000, 6400}},
    {"take_memalign", take_memalign, 4, 2, {3000}},
    {"take_array", take_array, 8, 4, {400, 30000}},
    {"take_large", take_large, 1, 8, {262144, 1048576}},
    {"take_temporary", take_temporary, 32, 0, {64, 4000}},
};

#define SITES (sizeof(sites) / sizeof(sites[0]))

struct tally {
	uint64_t allocs[SIZES], inuse[SIZES];
};

static struct tally tallies[THREADS][SITES];
static unsigned long rounds, pace_us;

static void pace(unsigned int *since)
{
	if (pace_us && ++*since % 32 == 0)
		usleep((useconds_t)pace_us);
}

static void run_site(const struct site *site, struct tally *tally, unsigned long round, unsigned int *since)
{
	unsigned int sizes = 0;

	while (sizes < SIZES && site->sizes[sizes])
		sizes++;
	for (unsigned int i = 0; i < site->times; i++) {
		unsigned long turn = round * site->times + i;
		unsigned int which = (unsigned int)(turn % sizes);
		void *block = site->take(site->sizes[which]);

		if (!block)
			abort();
		tally->allocs[which]++;
		/* Kept by turns of the sizes too, so that each size has its share. */
		if (site->keep_every && (turn / sizes) % site->keep_every == 0)
			tally->inuse[which]++;
		else
			free(block);
		pace(since);
	}
}

/* A block that grows step by step; every other one is kept at its last size. */
static void run_growth(struct tally *start, struct tally *growth, unsigned long round, unsigned int *since)
{
	for (unsigned int i = 0; i < sites[GROWTH_START].times; i++) {
		void *block = start_growth(sites[GROWTH_START].sizes[0]);
		unsigned int step;

		start->allocs[0]++;
		for (step = 0; step < SIZES && sites[GROWTH].sizes[step]; step++) {
			block = grow(block, sites[GROWTH].sizes[step]);
			growth->allocs[step]++;
			pace(since);
		}
		if (!block)
			abort();
		if ((round + i) % 8 == 0)
			growth->inuse[step - 1]++;
		else
			free(block);
	}
}

static void *work(void *argument)
{
	struct tally *tally = argument;
	unsigned int since = 0;

	for (unsigned long round = 0; round < rounds; round++) {
		run_growth(&tally[GROWTH_START], &tally[GROWTH], round, &since);
		for (unsigned int i = PLAIN; i < SITES; i++)
			run_site(&sites[i], &tally[i], round, &since);
	}
	return NULL;
}

static void write_truth(FILE *out, unsigned int site, unsigned int threads)
{
	uint64_t objects = 0, bytes = 0, live_objects = 0, live_bytes = 0;
	char list[512] = "";

	for (unsigned int i = 0; i < SIZES && sites[site].sizes[i]; i++) {
		uint64_t size = sites[site].sizes[i], allocs = 0, inuse = 0;
		size_t length = strlen(list);

		for (unsigned int thread = 0; thread < threads; thread++) {
			allocs += tallies[thread][site].allocs[i];
			inuse += tallies[thread][site].inuse[i];
		}
		objects += allocs;
		bytes += allocs * size;
		live_objects += inuse;
		live_bytes += inuse * size;
		snprintf(list + length, sizeof(list) - length, "%s%lu:%lu:%lu", i ? "," : "",
		    (unsigned long)size, (unsigned long)allocs, (unsigned long)inuse);
	}
	fprintf(out, "%s\t%lu\t%lu\t%lu\t%lu\t%s\n", sites[site].name, (unsigned long)objects,
	    (unsigned long)bytes, (unsigned long)live_objects, (unsigned long)live_bytes, list);
}

int main(int argc, char *argv[])
{
	unsigned int threads = argc > 4 ? (unsigned int)atoi(argv[4]) : 0;
	pthread_t others[THREADS];
	FILE *out;

	if (argc < 4 || threads >= THREADS) {
		fprintf(stderr, "usage: truth FILE ROUNDS PACE_US [THREADS below %d [wait]]\n", THREADS);
		return 2;
	}
	rounds = strtoul(argv[2], NULL, 10);
	pace_us = strtoul(argv[3], NULL, 10);
	if (argc > 5) {
		puts("ready");
		fflush(stdout);
		getchar();
	}
	for (unsigned int i = 0; i < threads; i++)
		pthread_create(&others[i], NULL, work, tallies[i + 1]);
	work(tallies[0]);
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(others[i], NULL);
	out = fopen(argv[1], "w");
	if (!out)
		return 1;
	for (unsigned int i = 0; i < SITES; i++)
		write_truth(out, i, threads + 1);
	return fclose(out) ? 1 : 0;
}
