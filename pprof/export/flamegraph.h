/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as one HTML page that needs nothing else: no network, no library. Click a frame to zoom,
 * search by regular expression, switch between the sample types, invert it. The state of the view is in the
 * address (#...), so that a view can be shared.
 *
 * The page holds the tree as arrays (frame, parent, own value per kind) and lays it out itself.
 */
#ifndef PPROF_EXPORT_FLAMEGRAPH_H
#define PPROF_EXPORT_FLAMEGRAPH_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* 0, -ENOMEM, -EFBIG (beyond the traces' max_bytes) or -EOVERFLOW. */
int flamegraph_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
