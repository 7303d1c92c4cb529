/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptrack's data file (format 3, as heaptrack_interpret writes it and heaptrack_print and heaptrack_gui
 * read it): strings, places, traces as a tree, and every single allocation and free. A profile has no single
 * allocations; they are generated from its sums: for each stack as many blocks of the mean size as were
 * allocated, and a free for each that is not in use. So allocations, leaks and sizes are right, and the peak
 * is what is in use; order and time mean nothing, and no block counts as temporary, because the profile does
 * not say which were.
 *
 * Beyond EVENTS_MAX events a block stands for several: `*scale` of them. Sums stay right; counts are that
 * much lower.
 */
#ifndef PPROF_EXPORT_HEAPTRACK_H
#define PPROF_EXPORT_HEAPTRACK_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* 0, -ENOMEM, -EFBIG (beyond the traces' max_bytes) or -EOVERFLOW. */
int heaptrack_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
