/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flat table as comma-separated values (RFC 4180, but with Unix line ends): a row per function, and for
 * each sample type its own value (flat) and the value with everything it called (cum); for the four sample
 * types of a heap also the standard error and the number of samples behind it. A cell is empty if its value
 * is unknown.
 */
#ifndef PPROF_EXPORT_CSV_H
#define PPROF_EXPORT_CSV_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* Sorted by flat of kind. 0, -ENOMEM or -EFBIG (beyond the traces' max_bytes). */
int csv_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
