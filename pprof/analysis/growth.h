/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows over a series of snapshots, and since when. The rows are those of the tables, judged by trend.h.
 *
 * A row is a function that heads stacks (row_label.h). A leak may be spread over several such functions, each
 * of which grows too little to be sure. It is found at the innermost function that called them all; a
 * function with a name goes before one without.
 */
#ifndef PPROF_ANALYSIS_GROWTH_H
#define PPROF_ANALYSIS_GROWTH_H

#include "pprof/analysis/traces.h"
#include "pprof/analysis/trend.h"

struct growth_row {
	uint32_t frame;
	bool is_caller; /* of the functions that head these stacks */
	struct trend trend;
	/* the trend's points, as columns of the traces and in the times that were given */
	size_t since_column, until_column;
	int64_t since_ns, until_ns;
	double inuse_bytes, samples; /* at the end */
	double rise_bytes;           /* from the first point to the last, be it chance or not */
};

struct growth {
	struct growth_row *rows; /* rows that grow, then rows that rose; the largest first */
	size_t count, growing_count;
	struct growth_row total; /* of everything selected; its frame has no meaning */
	size_t point_count;      /* fewer than TREND_POINTS_LEAST: nothing could be found */
};

/* The series is `column_count` columns of the traces, from `first_column` on; times_ns[] says when they were
 * taken, in rising order. The caller ends it with growth_fini() in all cases. 0, -ENOMEM, or -ENODATA if the
 * profiles do not say what is in use, or at what period they were sampled. */
int growth_make(struct growth *growth, const struct traces *t, size_t first_column, const int64_t *times_ns,
    size_t column_count);
void growth_fini(struct growth *growth);

#endif
