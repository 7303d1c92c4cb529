/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For whom a function holds what it holds: the way outwards from a leaf that most of its bytes take.
 *
 * Programs wrap malloc, and then the wrapper is the leaf of every stack and a flat table says nothing. Which
 * of its callers it is about, and how much of it, does.
 */
#ifndef PPROF_ANALYSIS_CALLERS_H
#define PPROF_ANALYSIS_CALLERS_H

#include "pprof/analysis/traces.h"

enum { CALLERS_MOST = 12 };

struct callers {
	uint32_t frames[CALLERS_MOST]; /* innermost first */
	size_t count;
	double shares[CALLERS_MOST]; /* of the leaf's value, what comes through this one and all before it */
};

/*
 * values: one per row of the traces. A caller is taken along while the way through it has a third or more of
 * the leaf's sum. 0 or -ENOMEM.
 */
int callers_find(struct callers *callers, const struct traces *t, const double *values, uint32_t leaf);

#endif
