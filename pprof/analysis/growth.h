/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions' memory grows over a series of snapshots, and since when. trend.h decides what is growth.
 *
 * First each row of the tables is judged: a row is about one function, the head of its stacks (row_label.h).
 * A leak may be spread over several functions, each of which grows too little to be distinguished from
 * chance. So the callers of the other rows are judged too, the innermost first, and all callers with a name
 * before those without.
 */
#ifndef PPROF_ANALYSIS_GROWTH_H
#define PPROF_ANALYSIS_GROWTH_H

#include "pprof/analysis/traces.h"
#include "pprof/analysis/trend.h"

struct growth_row {
	uint32_t frame;
	bool is_caller; /* `frame` called the functions that head the stacks */
	struct trend trend;
	/* where the trend begins and ends: columns of the traces, and their times */
	size_t since_column, until_column;
	int64_t since_ns, until_ns;
	double inuse_bytes, samples; /* in the last column */
	double rise_bytes;           /* from the first column to the last, by chance or not */
};

struct growth {
	struct growth_row *rows; /* rows that grow, then rows that rose and are flat; the largest first */
	size_t count, growing_count;
	struct growth_row total; /* of all selected rows; its frame has no meaning */
	size_t point_count;      /* snapshots; fewer than TREND_POINTS_LEAST: nothing was judged */
};

/* Judges the series of `column_count` columns of the traces that begins with `first_column`. times_ns[]: when
 * each was taken, in rising order. Returns 0; -ENOMEM; or -ENODATA if the profiles do not say what is in use,
 * or at what period they were sampled. The caller calls growth_fini() in all cases. */
int growth_make(struct growth *growth, const struct traces *t, size_t first_column, const int64_t *times_ns,
    size_t column_count);
void growth_fini(struct growth *growth);

#endif
