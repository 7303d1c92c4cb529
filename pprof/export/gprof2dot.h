/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gprof2dot's JSON (its schema.json, version 0): functions, and events that are a call chain from the leaf
 * outwards with its cost. `gprof2dot -f json FILE | dot -Tsvg` draws it.
 */
#ifndef PPROF_EXPORT_GPROF2DOT_H
#define PPROF_EXPORT_GPROF2DOT_H

#include <stdio.h>

#include "pprof/analysis/traces.h"

void gprof2dot_write(FILE *out, const struct traces *t, size_t column, enum measure_kind kind);

#endif
