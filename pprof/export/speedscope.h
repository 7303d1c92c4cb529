/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own file format (https://www.speedscope.app/file-format-schema.json): a table of frames and
 * one "sampled" profile per sample type. Unlike its import of pprof files this shows every type, and inlined
 * functions.
 */
#ifndef PPROF_EXPORT_SPEEDSCOPE_H
#define PPROF_EXPORT_SPEEDSCOPE_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* Negative values, which it cannot show, are left out. Returns 0. */
int speedscope_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
