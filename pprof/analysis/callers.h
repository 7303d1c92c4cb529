/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main callers of a function: the path outwards from a leaf that most of its bytes take.
 *
 * If a program wraps malloc, the wrapper is the leaf of every stack and a flat table says nothing; the
 * wrapper's callers, and their shares, do.
 */
#ifndef PPROF_ANALYSIS_CALLERS_H
#define PPROF_ANALYSIS_CALLERS_H

#include "pprof/analysis/traces.h"

enum { CALLERS_MOST = 12 };

struct callers {
	uint32_t frames[CALLERS_MOST]; /* innermost first */
	size_t count;
	double shares[CALLERS_MOST]; /* of the leaf's value, through this caller and all before it */
};

/*
 * values: one per row of the traces. The path goes on while a caller has a third or more of the leaf's sum. 0
 * or -ENOMEM.
 */
int callers_find(struct callers *callers, const struct traces *t, const double *values, uint32_t leaf);

#endif
