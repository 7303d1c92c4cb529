/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_api STEP...: a program that uses heaptap.h. Each step is one of
 *
 *   hold N       N blocks of 1000 bytes more, by take_held()
 *   drop         frees them all
 *   start, stop  sampling
 *   snap NAME    a snapshot; prints what heaptap_snapshot returns
 *   pool N       N blocks of 100 bytes of a pool of its own, reported, by take_pooled()
 *   drain        gives them back
 */
#include "proto/heaptap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv)
{
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
			printf("snapshot %d\n", heaptap_snapshot(argv[++i]));
			fflush(stdout);
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
