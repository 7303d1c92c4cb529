/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main callers of the function that a row is about (traces_row.head): the path outwards from it that most
 * of its bytes take. And what it mostly called: the library function or wrapper through which it allocated.
 * Of a function of a script, the callers are the script's; between these are its interpreter's, the same each
 * time.
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
	/* of a function of a script: which one of a library it called for that, if it mostly is one */
	uint32_t library;
	double library_share; /* likewise; 0: none, or many */
};

/*
 * values: one per row of the traces. The path goes on while a caller has a third or more of the function's
 * sum. 0 or -ENOMEM.
 */
int callers_find(struct callers *callers, const struct traces *t, const double *values, uint32_t function);

#endif
