/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main callers of the function that a row is about (traces_row.head): the path outwards from it that most
 * of its bytes take; and the library function or wrapper through which it mostly allocated. The callers of a
 * function of a script are functions of the script: the frames of the interpreter between them are left out,
 * for they are the same each time.
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
