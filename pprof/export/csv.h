/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flat table as comma-separated values (RFC 4180, but for lines that end like Unix's): a row per function,
 * and for each sample type what it holds itself (flat) and with all it called (cum), each of the four known
 * ones with its standard error, and how many samples that rests on. Empty where nothing is known.
 */
#ifndef PPROF_EXPORT_CSV_H
#define PPROF_EXPORT_CSV_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* Ordered by flat of kind. 0, -ENOMEM or -EFBIG (more than the traces may take). */
int csv_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
