/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two columns: what changed, and whether by more than chance.
 *
 * Samples of two runs are independent, and the variance of a difference is the sum of both variances. Two
 * snapshots of one process share samples. Then
 *   - what was allocated only grows: the difference is what came between, with the variance of that part;
 *   - of what is in use, only blocks allocated or freed between the two snapshots matter. If A bytes were
 *     allocated between and the difference is D, F = A - D bytes were freed; the variance of D is at most
 *     that of A + F bytes of that stack's block size. The smaller of this bound and the sum of both variances
 *     is used, which is never too small.
 *
 * The same holds for two columns of several processes, each with one state in both, or none in the first: it
 * began later. But where processes hold the same samples (shared_samples.h), the bound would be too small,
 * and both variances are added up.
 */
#ifndef PPROF_ANALYSIS_COLUMN_DIFF_H
#define PPROF_ANALYSIS_COLUMN_DIFF_H

#include "pprof/analysis/totals.h"

struct column_diff_sum {
	double before, after; /* values; after is scaled */
	double variance;      /* of the difference */
	double samples;       /* behind both */
};

struct column_diff_row {
	uint32_t frame;
	struct column_diff_sum flat, cum;
};

struct column_diff {
	struct column_diff_row *rows; /* largest change first; only rows with a change */
	size_t count;
	struct column_diff_sum sum;
	double scale; /* factor applied to the later column */
	/* a change is beyond chance if it exceeds this many standard errors: estimate_threshold() */
	double threshold;
};

struct column_diff_options {
	size_t before, after; /* columns */
	enum measure_kind kind;
	bool same_process; /* or the same processes */
	bool normalize;    /* scale `after` to the total of `before`, both after filtering */
	enum totals_order order;
};

/* 0 or -ENOMEM. */
int column_diff_make(
    struct column_diff *compared, const struct traces *t, const struct column_diff_options *options);
void column_diff_fini(struct column_diff *compared);

/* Variance of the difference of one stack (row). */
double column_diff_variance(
    const struct traces *t, size_t row, size_t before, size_t after, enum measure_kind kind);

static inline bool column_diff_is_sure(const struct column_diff_sum *sum, double threshold)
{
	double change = sum->after - sum->before;

	return change * change > threshold * threshold * sum->variance;
}

#endif
