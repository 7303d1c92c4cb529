/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gprof2dot's JSON (its schema.json, version 0): functions, and events that are a call chain from the leaf
 * outwards with its cost. `gprof2dot -f json FILE | dot -Tsvg` draws it.
 */
#ifndef PPROF_EXPORT_GPROF2DOT_H
#define PPROF_EXPORT_GPROF2DOT_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* Returns 0. */
int gprof2dot_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
