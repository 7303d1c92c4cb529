/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds stacks whose memory grows over a series of snapshots of one process, or of several, by more than
 * chance: possible leaks, found while the program still runs.
 *
 * A stack grows if its in-use bytes at the end are above those at the beginning by more than the threshold
 * for all stacks together (estimate_threshold()), and if they rose in both halves of the time, each by more
 * than two standard errors: a cache that fills and then stays as it is does not count.
 */
#ifndef PPROF_ANALYSIS_GROWTH_H
#define PPROF_ANALYSIS_GROWTH_H

#include "pprof/analysis/traces.h"

#define GROWTH_LEAST_COLUMNS 3

struct growth_row {
	uint32_t row; /* of the traces */
	/* bytes; variance of the difference; number of samples in the last */
	double first, last, variance, samples;
};

struct growth {
	struct growth_row *rows; /* largest first */
	size_t count;
	double threshold;
};

/* Columns [0, column_count) of the traces, in the order of time. 0 or -ENOMEM; fewer columns than needed: no
 * rows. */
int growth_make(struct growth *growth, const struct traces *t, size_t column_count);
void growth_fini(struct growth *growth);

#endif
