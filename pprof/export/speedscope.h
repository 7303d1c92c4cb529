/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own file format (https://www.speedscope.app/file-format-schema.json): a table of frames and
 * one "sampled" profile per sample type. Unlike its import of pprof files this shows every type, and inlined
 * functions.
 */
#ifndef PPROF_EXPORT_SPEEDSCOPE_H
#define PPROF_EXPORT_SPEEDSCOPE_H

#include <stdio.h>

#include "pprof/analysis/traces.h"

/* shown: the type that is open at first. Negative values, which it cannot show, are left out. */
void speedscope_write(
    FILE *out, const struct traces *t, size_t column, enum measure_kind shown, const char *name);

#endif
