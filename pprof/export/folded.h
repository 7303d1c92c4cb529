/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, the input of flamegraph.pl, inferno and others: one line per stack, frames from the
 * outermost separated by ';', a space, a whole number.
 */
#ifndef PPROF_EXPORT_FOLDED_H
#define PPROF_EXPORT_FOLDED_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* Stacks without a positive value are left out, since readers expect positive ones. Returns 0. */
int folded_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
