/* SPDX-License-Identifier: Apache-2.0 */
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
 */
#ifndef PPROF_ANALYSIS_ROW_LABEL_H
#define PPROF_ANALYSIS_ROW_LABEL_H

#include "pprof/analysis/traces.h"

/* Sets `head` and `through` of every row. Both are 0 if it is not called: a row is about the leaf. 0 or
 * -ENOMEM. */
int row_label_choose(struct traces *t);

#endif
