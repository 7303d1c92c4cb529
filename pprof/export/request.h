/* SPDX-License-Identifier: Apache-2.0 */
/* What an export format is to write: which column of the traces, which kind, and the names for it. */
#ifndef PPROF_EXPORT_REQUEST_H
#define PPROF_EXPORT_REQUEST_H

#include "pprof/analysis/traces.h"
#include "pprof/export/answer.h"
#include "pprof/model/origin.h"

#include <stdint.h>
#include <stdio.h>

/* Borrows everything. */
struct export_request {
	size_t column;                   /* one profile of the traces */
	bool has_peak;                   /* that of one process, or what several had in use at theirs */
	size_t peak;                     /* column of what was in use at the peak */
	bool peak_is_snapshot;           /* no peak was recorded, it is the largest of some snapshots */
	enum measure_kind kind;          /* for a format that shows several: the one to show first */
	const char *title;               /* shown to the user: the program, or "heap profile" */
	const struct origin *origin;     /* of the profile; NULL: not told */
	const char *samples;             /* "8234 taken, 2 lost stacks"; "" unknown */
	bool ended;                      /* written when the program ended */
	const struct answer *answer;     /* NULL: none */
	const char *program;             /* for formats that name it; "": unknown */
	size_t series_count;             /* the first so many columns are snapshots of one process */
	const int64_t *time_ns;          /* of each column of the series, in rising order */
	unsigned int threshold_permille; /* share of the total below which a format may combine nodes */
	uint64_t *scale;                 /* output: number of blocks that one block in the file stands for */
};

/*
 * The writers, each in the file of its name. 0, -ENOMEM, -EFBIG (beyond the traces' max_bytes) or -EOVERFLOW
 * (more than the format can hold).
 *   folded      leaves out stacks without a positive value, since readers expect positive ones
 *   speedscope  leaves out negative values, which it cannot show
 *   csv         sorts by flat of the kind
 *   massif      writes each profile of a series; the kind must count bytes
 */
typedef int export_writer(FILE *out, const struct traces *traces, const struct export_request *request);

export_writer csv_write, flamegraph_write, folded_write, gprof2dot_write, heaptrack_write, massif_write,
    speedscope_write;

#endif
