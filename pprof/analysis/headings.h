/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frame of a stack names its row in a table: the innermost one that is the user's own code, so that a
 * row says "load_users > std::vector::resize" and not "std::vector::_M_default_append".
 *
 * From the leaf outwards, by the frames' roles (frame_role.h), the heading is
 *   1. the first function of a script, where there is one, else of its language's library: what is
 *      inside of it is its interpreter;
 *   2. else the first frame of own code. A function whose name speaks of allocating is a wrapper, and passed
 *      over, if two or more different functions call it in these stacks;
 *   3. else the first frame of a library;
 *   4. else the leaf.
 *
 * The bytes of a stack count for exactly one row either way, so sums are what they were.
 */
#ifndef PPROF_ANALYSIS_HEADINGS_H
#define PPROF_ANALYSIS_HEADINGS_H

#include "pprof/analysis/traces.h"

/* Sets `head` and `through` of every row. Without it both are 0: a row is about the leaf. 0 or -ENOMEM. */
int headings_choose(struct traces *t);

#endif
