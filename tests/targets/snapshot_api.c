/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_api STEP...: a program that uses heaptap.h. Each step is one of
 *
 *   hold N       N blocks of 1000 bytes more, by take_held()
 *   drop         frees them all
 *   start, stop  sampling
 *   snap NAME    a snapshot; prints what heaptap_snapshot returns, and on stderr whether it waited in vain
 *   again        snapshots, ten a second, until one is answered or a minute has passed; prints as the last
 *   line         reads a line from stdin
 *   pool N       N blocks of 100 bytes of a pool of its own, reported, by take_pooled()
 *   drain        gives them back
 */
#include "proto/heaptap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAMED         __attribute__((noinline, noclone))
#define STAY(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

enum { HELD_MAX = 100000, POOLED_BYTES = 100, POOLED_MAX = 10000 };

static void *held[HELD_MAX];
static size_t held_count;
static char *pool;
static size_t pooled;

static NAMED void *take_held(void)
{
	void *block = malloc(1000);

	STAY(block);
	return block;
}

static NAMED void *take_pooled(void)
{
	if (!pool) {
		pool = malloc(POOLED_BYTES * POOLED_MAX);
		heaptap_report_free(pool, POOLED_BYTES * POOLED_MAX);
	}
	void *block = pool + POOLED_BYTES * pooled++;
	heaptap_report_alloc(block, POOLED_BYTES);
	STAY(block);
	return block;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void snap(const char *name)
{
	double begun = now_s();
	int done = heaptap_snapshot(name);

	if (!done && now_s() - begun > 1.9) /* of 2 s */
		fprintf(stderr, "waited in vain\n");
	printf("snapshot %d\n", done);
	fflush(stdout);
}

static void snap_again(void)
{
	int done = 0;

	for (int i = 0; i < 600 && !done; i++) {
		done = heaptap_snapshot(NULL);
		if (!done)
			usleep(100000);
	}
	printf("snapshot %d\n", done);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[80];

	for (int i = 1; i < argc; i++) {
		size_t count = i + 1 < argc ? strtoul(argv[i + 1], NULL, 10) : 0;

		if (strcmp(argv[i], "hold") == 0) {
			while (count-- && held_count < HELD_MAX)
				held[held_count++] = take_held();
			i++;
		} else if (strcmp(argv[i], "drop") == 0) {
			while (held_count)
				free(held[--held_count]);
		} else if (strcmp(argv[i], "start") == 0) {
			heaptap_start();
		} else if (strcmp(argv[i], "stop") == 0) {
			heaptap_stop();
		} else if (strcmp(argv[i], "snap") == 0) {
			snap(argv[++i]);
		} else if (strcmp(argv[i], "again") == 0) {
			snap_again();
		} else if (strcmp(argv[i], "line") == 0) {
			if (!fgets(line, sizeof(line), stdin))
				return 1;
		} else if (strcmp(argv[i], "pool") == 0) {
			while (count-- && pooled < POOLED_MAX)
				take_pooled();
			i++;
		} else if (strcmp(argv[i], "drain") == 0) {
			while (pooled) {
				pooled--;
				heaptap_report_free(pool + POOLED_BYTES * pooled, POOLED_BYTES);
			}
		}
	}
	return 0;
}
