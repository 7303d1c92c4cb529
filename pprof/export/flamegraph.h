/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as one HTML page that needs nothing else: no network, no library. It is the page of `heaptap
 * serve` (pprof/page/) with one profile in it: flame graph, callers and callees of a function, table, call
 * tree, stacks. The state of the view is in the address (#...), so that a view can be shared.
 */
#ifndef PPROF_EXPORT_FLAMEGRAPH_H
#define PPROF_EXPORT_FLAMEGRAPH_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* 0, -ENOMEM, -EFBIG (beyond the traces' max_bytes) or -EOVERFLOW. */
int flamegraph_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
