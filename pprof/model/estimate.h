/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variance of a sampled sum, computed from the sum itself: a profile keeps no record of single samples.
 *
 * A block of S bytes is sampled with probability p = 1 - exp(-S/T), independently of all others, and then
 * stands for 1/p objects and S/p bytes (proto/weight.h). That is Poisson sampling with the Horvitz-Thompson
 * estimator, whose variance is the sum over all blocks of y^2 (1-p)/p (Sarndal, Swensson and Wretman, Model
 * Assisted Survey Sampling, 1992, section 3.5), itself estimated from N objects of B bytes in total as
 *
 *	S = B/N		n = N p			how many samples the sum rests on
 *	bytes:		B S (1-p)/p		objects:	N (1-p)/p
 *
 * which is exact when all blocks of a stack have one size. For sizes far below T it does not depend on the
 * sizes at all: S (1-p)/p goes to T, so B bytes have the standard error sqrt(B T), whatever the mixture. In
 * between it errs on the safe side: S/(exp(S/T)-1) falls with S, and the mean over objects is below the mean
 * over bytes, which would be the right one to first order.
 */
#ifndef PPROF_MODEL_ESTIMATE_H
#define PPROF_MODEL_ESTIMATE_H

#include "pprof/text/amount.h"

#include <stdbool.h>

/* Sums of estimates of different blocks are independent: all three just add up. */
struct estimate {
	double samples;
	double bytes_variance, objects_variance;
};

/* Of fewer samples the error itself is unsure, because the normal approximation fails there; unless they are
 * of blocks so large that nearly each is sampled. */
#define ESTIMATE_FEW_SAMPLES 5
#define ESTIMATE_SURE_PART   0.1

/* size_bytes is used when objects is 0 (0: not known either). period_bytes 1: everything was recorded. */
struct estimate estimate_of(double bytes, double objects, double size_bytes, double period_bytes);

/* value and variance: of bytes or of objects. */
static inline bool estimate_is_few(double value, double samples, double variance)
{
	const double sure = ESTIMATE_SURE_PART * value;

	return variance > sure * sure && samples < ESTIMATE_FEW_SAMPLES - 0.5;
}

static inline void estimate_add(struct estimate *sum, struct estimate more)
{
	sum->samples += more.samples;
	sum->bytes_variance += more.bytes_variance;
	sum->objects_variance += more.objects_variance;
}

/* The standard error of an estimate from so many samples, in at most 9 columns: "+-2.8%"; "+-58%?" if so few
 * samples cannot tell the error; "exact"; "" if the error is unknown (unsure). */
const char *estimate_doubt(
    double value, double samples, double variance, bool unsure, char text[AMOUNT_BYTES]);

/*
 * The difference of two independent sums is beyond chance if it is larger than this many of its standard
 * errors: two-sided 5% for all `rows` of a table together (Bonferroni), by the normal approximation.
 */
double estimate_threshold(double rows);

#endif
