/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the program came to the function that a row is about (traces_row.head): the callers through which most
 * of the function's bytes were allocated, from the innermost outwards; and the library function or wrapper
 * that the function called for most of them. The frames of an interpreter between two functions of a script
 * are left out.
 */
#ifndef PPROF_ANALYSIS_CALLERS_H
#define PPROF_ANALYSIS_CALLERS_H

#include "pprof/analysis/traces.h"

enum { CALLERS_MOST = 12 };

struct callers {
	uint32_t frames[CALLERS_MOST]; /* innermost first */
	size_t count;
	double shares[CALLERS_MOST]; /* of the function's value, through this caller and all before it */
	uint32_t through;
	double through_share; /* of the function's value; 0: it allocates itself, or through many */
	/* for a function of a script: the library function that it mostly called for that */
	uint32_t library;
	double library_share; /* share of the function's value; 0: no library function, or many */
};

/*
 * values: one per row of the traces. The path goes on while a caller has a third or more of the function's
 * sum. 0 or -ENOMEM.
 */
int callers_find(struct callers *callers, const struct traces *t, const double *values, uint32_t function);

#endif
