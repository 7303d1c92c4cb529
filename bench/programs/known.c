/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known MIX BYTES PACE_BYTES FILE: allocates about BYTES through each of MIX's named functions and writes to
 * FILE what a profiler should have seen of each, tab-separated:
 *
 *     function  size:allocs:inuse,...
 *
 *   sizes     one function per size, 16 B to 64 MiB; every other block stays
 *   heavy     sizes from a truncated Pareto distribution, shape 1.1, drawn by a generator that is the same in
 *             every run
 *   growth    blocks that grow by realloc
 *   threads   four threads allocate, four others free
 *   fork      FILE is the parent's truth, FILE.child its child's: what it inherited and did not free counts
 *             as in use
 *   pauses    heaptap_stop() and heaptap_start() in turns; what is allocated while stopped is not to be seen
 *   flood     says "ready", waits for a line, then works as fast as it can; says "done" and waits again
 *
 * It sleeps for a millisecond after every PACE_BYTES, so that the profiler under test is not merely flooded.
 * Its own tables are no heap memory.
 */
#include "proto/heaptap.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* noipa: gcc would make one function of those that look alike */
#define NAMED         __attribute__((noinline, noipa))
/* Keeps a call from becoming a tail call, which would hide the function that we are about. */
#define STAY(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

enum { SIZES_MAX = 96, SITES_MAX = 32, THREADS = 4 };

struct row {
	size_t size;
	uint64_t allocs, inuse;
};

struct site {
	const char *name;
	struct row rows[SIZES_MAX];
	unsigned int count;
};

static struct site sites[SITES_MAX];
static unsigned int site_count;
static uint64_t bytes_each;
static uint64_t pace_bytes;
static __thread uint64_t since_pause_bytes;

static void pace(size_t size)
{
	since_pause_bytes += size;
	if (since_pause_bytes >= pace_bytes) {
		since_pause_bytes = 0;
		usleep(1000);
	}
}

static struct site *site_new(const char *name)
{
	struct site *site = &sites[site_count++];

	site->name = name;
	return site;
}

/* Threads have rows of their own: nothing here is atomic. */
static struct row *row_of(struct site *site, size_t size)
{
	for (unsigned int i = 0; i < site->count; i++)
		if (site->rows[i].size == size)
			return &site->rows[i];
	if (site->count == SIZES_MAX)
		abort();
	site->rows[site->count].size = size;
	return &site->rows[site->count++];
}

/* Pointers that are to be freed later. */
static void **table_new(uint64_t count)
{
	void **table = mmap(
	    NULL, (count + 1) * sizeof(*table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (table == MAP_FAILED)
		abort();
	return table;
}

static void write_truth(const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out)
		abort();
	for (unsigned int s = 0; s < site_count; s++) {
		fprintf(out, "%s\t", sites[s].name);
		for (unsigned int i = 0; i < sites[s].count; i++)
			fprintf(out, "%s%zu:%lu:%lu", i ? "," : "", sites[s].rows[i].size,
			    (unsigned long)sites[s].rows[i].allocs, (unsigned long)sites[s].rows[i].inuse);
		fputc('\n', out);
	}
	if (fclose(out))
		abort();
}

#define TAKER(name)                          \
	static NAMED void *name(size_t size) \
	{                                    \
		void *block = malloc(size);  \
		STAY(block);                 \
		return block;                \
	}                                    \
	_Static_assert(true, "takes the semicolon")

/* ---- sizes */

TAKER(size_16);
TAKER(size_64);
TAKER(size_256);
TAKER(size_1k);
TAKER(size_4k);
TAKER(size_16k);
TAKER(size_64k);
TAKER(size_256k);
TAKER(size_1m);
TAKER(size_4m);
TAKER(size_16m);
TAKER(size_64m);

static const struct {
	const char *name;
	void *(*take)(size_t size);
	size_t size;
} size_sites[] = {
    {"size_16", size_16, 16},
    {"size_64", size_64, 64},
    {"size_256", size_256, 256},
    {"size_1k", size_1k, 1 << 10},
    {"size_4k", size_4k, 4 << 10},
    {"size_16k", size_16k, 16 << 10},
    {"size_64k", size_64k, 64 << 10},
    {"size_256k", size_256k, 256 << 10},
    {"size_1m", size_1m, 1 << 20},
    {"size_4m", size_4m, 4 << 20},
    {"size_16m", size_16m, 16 << 20},
    {"size_64m", size_64m, 64 << 20},
};

static void run_sizes(void)
{
	for (unsigned int s = 0; s < sizeof(size_sites) / sizeof(size_sites[0]); s++) {
		size_t size = size_sites[s].size;
		struct row *row = row_of(site_new(size_sites[s].name), size);
		uint64_t times = bytes_each / size < 2 ? 2 : bytes_each / size;

		for (uint64_t i = 0; i < times; i++) {
			void *block = size_sites[s].take(size);

			row->allocs++;
			if (i % 2)
				row->inuse++;
			else
				free(block);
			pace(size);
		}
	}
}

/* ---- heavy tails */

TAKER(heavy_kept);
TAKER(heavy_temporary);

static uint64_t state = 1;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)((state >> 11) + 1) * 0x1p-53;
}

/* P(size > s) = (16 / s)^1.1 up to 16 MiB, on a grid of four sizes to the octave. */
static size_t heavy_size(void)
{
	double u = uniform(), size = 16, step = 1.189207115002721, tail = 1;

	while (size < (16 << 20)) {
		tail *= 0.8264463; /* step^-1.1 */
		if (u > tail)
			break;
		size *= step;
	}
	return (size_t)size;
}

static void run_heavy(void)
{
	struct site *kept = site_new("heavy_kept"), *temporary = site_new("heavy_temporary");

	/* The mean of one block is about 130 bytes. */
	for (uint64_t i = 0; i < bytes_each / 64; i++) {
		size_t size = heavy_size();

		if (i % 4 == 0) {
			struct row *row = row_of(kept, size);

			heavy_kept(size);
			row->allocs++;
			row->inuse++;
		} else {
			free(heavy_temporary(size));
			row_of(temporary, size)->allocs++;
		}
		pace(size);
	}
}

/* ---- growth */

TAKER(growth_start);

static NAMED void *growth_step(void *old, size_t size)
{
	void *block = realloc(old, size);

	STAY(block);
	return block;
}

static void run_growth(void)
{
	struct site *start = site_new("growth_start"), *step = site_new("growth_step");

	for (uint64_t i = 0; i < bytes_each / (128 << 10) + 1; i++) {
		size_t size = 64;
		void *block = growth_start(size);

		row_of(start, size)->allocs++;
		while (size < (1 << 20)) {
			size += size / 2;
			block = growth_step(block, size);
			row_of(step, size)->allocs++;
			pace(size);
		}
		if (i % 4 == 0)
			row_of(step, size)->inuse++;
		else
			free(block);
	}
}

/* ---- threads: the even ones allocate and hand over, the odd ones free */

TAKER(thread_small);
TAKER(thread_middle);
TAKER(thread_large);

static void *(*const thread_takes[3])(size_t size) = {thread_small, thread_middle, thread_large};
static const char *const thread_names[3] = {"thread_small", "thread_middle", "thread_large"};
static const size_t thread_sizes[3] = {48, 3000, 150000};

static struct belt {
	void *blocks[256];
	_Atomic uint64_t put, taken;
	_Atomic int ended;
	uint64_t allocs[3], inuse[3];
} belts[THREADS];

static void *produce(void *argument)
{
	struct belt *belt = argument;

	for (unsigned int k = 0; k < 3; k++) {
		for (uint64_t i = 0; i < bytes_each / THREADS / thread_sizes[k]; i++) {
			void *block = thread_takes[k](thread_sizes[k]);

			belt->allocs[k]++;
			pace(thread_sizes[k]);
			if (i % 8 == 0) {
				belt->inuse[k]++;
				continue;
			}
			while (belt->put - belt->taken == 256)
				sched_yield();
			belt->blocks[belt->put % 256] = block;
			belt->put++;
		}
	}
	belt->ended = 1;
	return NULL;
}

static void *consume(void *argument)
{
	struct belt *belt = argument;

	for (;;) {
		int ended = belt->ended;

		if (belt->taken == belt->put) {
			if (ended)
				return NULL;
			sched_yield();
			continue;
		}
		free(belt->blocks[belt->taken % 256]);
		belt->taken++;
	}
}

static void run_threads(void)
{
	pthread_t threads[2 * THREADS];

	for (unsigned int i = 0; i < 2 * THREADS; i++)
		pthread_create(&threads[i], NULL, i % 2 ? consume : produce, &belts[i / 2]);
	for (unsigned int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned int k = 0; k < 3; k++) {
		struct row *row = row_of(site_new(thread_names[k]), thread_sizes[k]);

		for (unsigned int i = 0; i < THREADS; i++) {
			row->allocs += belts[i].allocs[k];
			row->inuse += belts[i].inuse[k];
		}
	}
}

/* ---- fork */

TAKER(before_fork_small);
TAKER(before_fork_large);
TAKER(child_take);
TAKER(parent_take);

static uint64_t take_some(void *(*take)(size_t), size_t size, struct row *row, void **table)
{
	uint64_t times = bytes_each / size;

	for (uint64_t i = 0; i < times; i++) {
		table[i] = take(size);
		row->allocs++;
		row->inuse++;
		pace(size);
	}
	return times;
}

static void free_some(struct row *row, void **table, uint64_t count, unsigned int every)
{
	for (uint64_t i = 0; i < count; i += every) {
		free(table[i]);
		row->inuse--;
	}
}

static void run_fork(const char *path)
{
	const size_t small = 100, large = 20000;
	struct row *small_row = row_of(site_new("before_fork_small"), small);
	struct row *large_row = row_of(site_new("before_fork_large"), large);
	void **small_table = table_new(bytes_each / small), **large_table = table_new(bytes_each / large);
	uint64_t small_count = take_some(before_fork_small, small, small_row, small_table);
	uint64_t large_count = take_some(before_fork_large, large, large_row, large_table);
	pid_t child = fork();
	struct row *row = row_of(site_new(child ? "parent_take" : "child_take"), 500);

	if (!child)
		small_row->allocs = large_row->allocs = 0; /* its parent's doing */
	free_some(small_row, small_table, small_count, child ? 4 : 2);
	free_some(large_row, large_table, large_count, child ? 4 : 2);
	void **table = table_new(bytes_each / 500);
	uint64_t count = take_some(child ? parent_take : child_take, 500, row, table);
	free_some(row, table, count, 3);
	if (child) {
		int status;

		if (waitpid(child, &status, 0) != child || status)
			abort();
		return;
	}
	char name[4096];
	snprintf(name, sizeof(name), "%s.child", path);
	write_truth(name);
	_exit(0);
}

/* ---- pauses */

TAKER(pause_seen);
TAKER(pause_unseen);

static void run_pauses(void)
{
	const size_t size = 300;
	struct row *row = row_of(site_new("pause_seen"), size);

	row_of(site_new("pause_unseen"), size);
	for (uint64_t i = 0; i < bytes_each / size; i++) {
		if (i % 1000 == 0)
			heaptap_start();
		void *seen = pause_seen(size);
		row->allocs++;
		if (i % 3)
			free(seen);
		else
			row->inuse++;
		if (i % 1000 == 999) {
			heaptap_stop();
			for (int k = 0; k < 1000; k++) {
				void *unseen = pause_unseen(size);

				if (k % 2)
					free(unseen);
			}
		}
		pace(size);
	}
	heaptap_start();
}

/* ---- flood */

TAKER(flood_kept);
TAKER(flood_temporary);

static void wait_line(const char *say)
{
	char byte;

	if (write(1, say, strlen(say)) < 0)
		abort();
	while (read(0, &byte, 1) == 1 && byte != '\n')
		;
}

static void run_flood(void)
{
	struct row *kept = row_of(site_new("flood_kept"), 1000),
	           *temporary = row_of(site_new("flood_temporary"), 200);

	wait_line("ready\n");
	for (uint64_t i = 0; i < bytes_each / 1000; i++) {
		if (i % 16 == 0) {
			flood_kept(1000);
			kept->allocs++;
			kept->inuse++;
		}
		for (int k = 0; k < 5; k++)
			free(flood_temporary(200));
		temporary->allocs += 5;
	}
	wait_line("done\n");
}

int main(int argc, char *argv[])
{
	if (argc != 5) {
		fprintf(stderr, "usage: known MIX BYTES PACE_BYTES FILE\n");
		return 2;
	}
	bytes_each = strtoull(argv[2], NULL, 10);
	pace_bytes = strtoull(argv[3], NULL, 10);
	if (!strcmp(argv[1], "sizes"))
		run_sizes();
	else if (!strcmp(argv[1], "heavy"))
		run_heavy();
	else if (!strcmp(argv[1], "growth"))
		run_growth();
	else if (!strcmp(argv[1], "threads"))
		run_threads();
	else if (!strcmp(argv[1], "fork"))
		run_fork(argv[4]);
	else if (!strcmp(argv[1], "pauses"))
		run_pauses();
	else if (!strcmp(argv[1], "flood"))
		run_flood();
	else
		return 2;
	write_truth(argv[4]);
	return 0;
}
