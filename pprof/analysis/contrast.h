/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two columns: what changed, and whether by more than chance.
 *
 * Samples of two runs are independent, and the variance of a difference is the sum of both variances. Two
 * snapshots of one process share samples. Then
 *   - what was allocated is a growing sum: the difference is its last part, with that part's variance;
 *   - of what is in use, only blocks that came or went between make a difference. A bytes were allocated
 *     meanwhile and F = A - D freed, D the difference; each of the two sums has at most the variance of A + F
 *     bytes of that stack's block size. The smaller of this bound and the sum of both is taken: it is never
 *     too small.
 */
#ifndef PPROF_ANALYSIS_CONTRAST_H
#define PPROF_ANALYSIS_CONTRAST_H

#include "pprof/analysis/totals.h"

struct contrast_sum {
	double before, after; /* values; after is scaled */
	double variance;      /* of the difference */
	double samples;       /* behind both */
};

struct contrast_row {
	uint32_t frame;
	struct contrast_sum flat, cum;
};

struct contrast {
	struct contrast_row *rows; /* largest change first; rows without any are not there */
	size_t count;
	struct contrast_sum sum;
	double scale; /* that the later column was multiplied by */
	/* a change beyond chance is more than this many standard errors: estimate_threshold() */
	double threshold;
};

struct contrast_options {
	size_t before, after; /* columns */
	enum measure_kind kind;
	bool same_process;
	bool normalize; /* scale after to before's total, of all that the filters let pass */
	enum totals_order order;
};

/* 0 or -ENOMEM. */
int contrast_make(struct contrast *contrast, const struct traces *t, const struct contrast_options *options);
void contrast_fini(struct contrast *contrast);

/* Of one stack. */
double contrast_variance(
    const struct traces *t, size_t row, size_t before, size_t after, enum measure_kind kind);

static inline bool contrast_is_sure(const struct contrast_sum *sum, double threshold)
{
	double change = sum->after - sum->before;

	return change * change > threshold * threshold * sum->variance;
}

#endif
