/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile, or the difference of two, as the page (pprof/page/graph.js) reads it: JSON, in columns, since an
 * object for each of 100,000 nodes would be several times as long.
 *
 *	title, about	what it is of
 *	files, modules	each path once; number 0 is "", unknown
 *	frames		by frame: name, label (short name, "" the same), file, module and role; and line,
 *			if frames are distinguished by line
 *	nodes		by node: frame and parent, -1 at the root; parents come before children
 *	threads, ages	names; number 0 is "", unknown
 *	rows		by row: `node`, where its stack ends; `head`, the frame by which a table names the
 *			row; `through`, the frame that the head called (row_label.h); `thread` and `age`, if
 *			some row has one. `head` and `through` count the frames outwards from `node`
 *	kinds		of each sample type: by row the value, one standard error (null: not known; []: all
 *			0) and the number of samples; the total as `all`
 *
 * The page also reads the member `answer` (answer.h), which its writer adds.
 *
 * The kind `peak` is what was in use at the peak. A difference has no kind `peak`.
 *
 * In a difference `value` is the new value, `base` is the old value, and `error` is the error of the change.
 */
#ifndef PPROF_EXPORT_GRAPH_H
#define PPROF_EXPORT_GRAPH_H

#include "pprof/analysis/traces.h"
#include "pprof/model/origin.h"
#include "pprof/text/json.h"

#define GRAPH_NO_COLUMN SIZE_MAX

/* Borrows everything. */
struct graph_choice {
	const char *title;
	const struct origin *origin;      /* NULL: nothing is told of it */
	const char *samples;              /* "8234 taken, 2 lost stacks"; "" unknown */
	bool ended;                       /* the profile was written when the program ended */
	size_t column, base;              /* base: GRAPH_NO_COLUMN if there is one profile only */
	size_t peak;                      /* what was in use at the peak: GRAPH_NO_COLUMN if not known */
	bool peak_is_snapshot;            /* no peak was recorded, it is the largest of some snapshots */
	const struct origin *base_origin; /* of a difference: what the base is */
	enum measure_kind kind;           /* the one that is shown first */
	bool same_process, normalize;
};

/* Members of the object that is open. 0, -ENOMEM, -EFBIG (beyond the traces' max_bytes) or -EOVERFLOW. */
int graph_write(struct json *json, const struct traces *t, const struct graph_choice *choice);

#endif
