/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose memory has a shape, each beside a load that keeps nothing: shapes late | step | steady.
 *
 * job: late
 *   build: gcc -O2 -g -o $OUT/shapes $HERE/shapes.c
 *   start: $OUT/shapes late
 *   expect: grows leak_late
 * job: step
 *   start: $OUT/shapes step
 *   expect: rose load_table
 * job: steady
 *   start: $OUT/shapes steady
 *   expect: nothing .
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUIET_S = 30, ROUNDS_A_SECOND = 20, WORK = 2000 };

static void *volatile kept;
static char *work[WORK];

__attribute__((noinline)) static void leak_late(void)
{
	char *block = malloc(4096);

	memset(block, 1, 4096);
	kept = block;
}

__attribute__((noinline)) static void load_table(void)
{
	for (int i = 0; i < 5000; i++) {
		char *block = malloc(4096);

		memset(block, 2, 4096);
		kept = block;
	}
}

__attribute__((noinline)) static void serve(void)
{
	for (int i = 0; i < 100; i++) {
		const int at = rand() % WORK;

		free(work[at]);
		work[at] = calloc(1, 8192);
	}
}

int main(int argc, char *argv[])
{
	const char *shape = argc > 1 ? argv[1] : "steady";

	for (long round = 0;; round++) {
		serve();
		if (round == QUIET_S * ROUNDS_A_SECOND) {
			puts("leak begins");
			fflush(stdout);
			if (!strcmp(shape, "step"))
				load_table();
		}
		if (round >= QUIET_S * ROUNDS_A_SECOND && !strcmp(shape, "late"))
			for (int i = 0; i < 60; i++)
				leak_late();
		usleep(1000000 / ROUNDS_A_SECOND);
	}
}
