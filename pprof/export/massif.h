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
 * Each column becomes a detailed snapshot. ms_print wants addresses; names are told apart by the number
 * of their frame.
 */
#ifndef PPROF_EXPORT_MASSIF_H
#define PPROF_EXPORT_MASSIF_H

#include <stdio.h>

#include "pprof/analysis/traces.h"

struct massif_options {
	const char *command;             /* for the header */
	size_t column_count;             /* the first ones of the traces */
	const int64_t *time_ns;          /* of each, rising */
	unsigned int threshold_permille; /* of the snapshot's total, below which nodes are folded */
};

/* kind in bytes. 0, -ENOMEM, -EFBIG (more than the traces may take) or -EOVERFLOW. */
int massif_write(
    FILE *out, const struct traces *t, enum measure_kind kind, const struct massif_options *options);

#endif
