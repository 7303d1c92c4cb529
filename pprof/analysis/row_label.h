/* SPDX-License-Identifier: Apache-2.0 */
/* What a row is called in a table: the frame that names it, the function that this frame called, and how the
 * program came to it. */
#ifndef PPROF_ANALYSIS_ROW_LABEL_H
#define PPROF_ANALYSIS_ROW_LABEL_H

#include "pprof/analysis/traces.h"

/*
 * Which frame of a stack names its row in a table: the innermost frame of the user's own code, so that a row
 * says "load_users > std::vector::resize" and not "std::vector::_M_default_append".
 *
 * From the leaf outwards, by the roles of the frames (frames.h), the heading is the first of these that
 * the stack has:
 *   1. the first function of a script; without one, the first function of the script language's library. The
 *      frames inside of it are the interpreter's;
 *   2. the first frame of own code. A function whose name speaks of allocating is taken for a wrapper, and
 *      passed over, if two or more different functions call it in these stacks;
 *   3. the first frame of a library;
 *   4. the leaf.
 *
 * The bytes of a stack count for exactly one row, so sums are what they were.
 *
 * Sets `head` and `through` of every row. Without this call both are 0: a row is about the leaf. 0 or
 * -ENOMEM.
 */
int row_label_choose(struct traces *t);

/*
 * How the program came to the function that a row is about (traces_row.head): the callers through which most
 * of the function's bytes were allocated, from the innermost outwards; and the library function or wrapper
 * that the function called for most of them. The frames of an interpreter between two functions of a script
 * are left out.
 */
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
