/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the given profiles count, and in which column, by their origins.
 *
 *   one process       a column for each state, by time, and one for the peak, the last
 *   several           a column with the newest state of each, one with their peaks if there are any, and one
 *                     for each moment at which their states are added up
 *   deltas, all       one column with all of them
 *
 * Of several sessions the newest counts, of heap and event profiles those of the heap, and deltas only if
 * they are asked for, or nothing else was given.
 */
#ifndef SAMPLER_CMD_REPORT_SELECTION_H
#define SAMPLER_CMD_REPORT_SELECTION_H

#include "pprof/analysis/moments.h"
#include "pprof/model/origin.h"
#include "sampler/cmd/cli/options.h"

#include <stdbool.h>
#include <stddef.h>

struct selection_pair {
	size_t file, column;
	size_t process;   /* of the file; those of one process follow each other within a column */
	bool is_added_up; /* in the series of several processes */
	bool ended;       /* likewise; the process had ended before */
};

struct selection {
	struct selection_pair *pairs; /* a file may be in two columns */
	size_t count, column_count;
	size_t series_count; /* columns of one process' states, else 1 */
	/* The columns that show growth, by time: what was in use while processes ran. They are the states of
	 * one process without its exit, or sums of the states of several processes
	 * (pprof/analysis/moments.h). */
	size_t growth_first, growth_count;
	int64_t growth_times_ns[MOMENTS_MOST]; /* only of several processes */
	size_t now;                            /* the column that is asked for */
	bool has_peak;                         /* the last column is the peak's, or now is */
	enum read_state state;
	size_t process_count;
	size_t session_count, session; /* the number of the session that counts, from 1; 0: all count */
	size_t left;                   /* with one column: other files of the sessions that count */
	size_t events_left;            /* files of another kind */
	size_t peaks_missing; /* processes without a peak: their newest state is in the column of peaks */
};

struct selection_choice {
	enum read_state state;
	int32_t session; /* as in read_options, SESSION_DEFAULT being SESSION_NEWEST */
	bool one_column; /* only the column that is asked for */
	bool no_growth;  /* nobody asks what grows */
};

/* Pure. 0; -ENOMEM; -ERANGE: no session of that number (session_count is set); -ENODATA: no delta. The caller
 * ends it with selection_fini() in any case. */
int selection_make(struct selection *selection, const struct origin *const *origins, size_t count,
    const struct selection_choice *choice);
void selection_fini(struct selection *selection);

#endif
