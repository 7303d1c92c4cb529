/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * pair: for each line on standard input, what a malloc and its free cost: ns per pair, the best of 25 short
 * runs (the machine is shared), on standard output. So that one process can be asked before it is attached
 * to, while it is, and after it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 8, RUNS = 25, PAIRS = 40000 };

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double run(void)
{
	void *volatile blocks[BATCH];
	double start = now_ns();
	for (long i = 0; i < PAIRS / BATCH; i++) {
		for (int n = 0; n < BATCH; n++)
			blocks[n] = malloc(16 + (size_t)n * 24);
		for (int n = 0; n < BATCH; n++)
			free(blocks[n]);
	}
	return (now_ns() - start) / PAIRS;
}

int main(void)
{
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		double best = run();

		for (int i = 1; i < RUNS; i++) {
			double taken = run();

			best = taken < best ? taken : best;
		}
		printf("%.2f\n", best);
	}
	return 0;
}
