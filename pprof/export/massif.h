/* SPDX-License-Identifier: Apache-2.0 */
/*
 * massif's output (valgrind's heap profiler), which ms_print and massif-visualizer draw: a header, then
 * snapshots with a time and a size, some with a call tree from the leaf outwards:
 *
 *	n2: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 *	 n1: 900 0x401000: load (load.c:12)
 *	  n0: 900 0x402000: main (main.c:3)
 *	 n0: 100 in 3 places, all below massif's threshold (1.00%)
 *
 * Each column becomes a detailed snapshot. ms_print wants addresses: the number of the frame stands in for
 * one.
 */
#ifndef PPROF_EXPORT_MASSIF_H
#define PPROF_EXPORT_MASSIF_H

#include "pprof/export/choice.h"

#include <stdio.h>

/* Writes each profile of the series; the kind must count bytes. 0, -ENOMEM, -EFBIG (beyond the traces'
 * max_bytes) or -EOVERFLOW. */
int massif_write(FILE *out, const struct traces *t, const struct export_choice *choice);

#endif
