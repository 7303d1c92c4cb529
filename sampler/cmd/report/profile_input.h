/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of all commands that read profiles: makes traces of the files and filters of the command line.
 *
 * selection.h says which files count, and in which column: each state of one process has a column, by time;
 * several processes are added up; the peak has the last column.
 */
#ifndef SAMPLER_CMD_REPORT_PROFILE_INPUT_H
#define SAMPLER_CMD_REPORT_PROFILE_INPUT_H

#include "pprof/analysis/filter.h"
#include "pprof/analysis/traces.h"
#include "pprof/model/origin.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/report/process_set.h"

struct profile_input {
	struct traces traces;
	/* where `traces` are for programs: the same as tables for people have them, for sentences; use
	 * profile_input_tables() */
	struct traces tables;
	bool has_tables;
	struct filter filter;
	struct origin *origins;            /* of each column; of several files the origin of the newest */
	struct process_set *sets;          /* of each column */
	size_t file_count;                 /* that count, in all columns */
	size_t series_count;               /* columns of the series, 1 if there is none */
	size_t growth_first, growth_count; /* columns to look for growth in: selection.h */
	int64_t *growth_times_ns;          /* of these */
	int64_t *growth_rss_bytes; /* resident memory of all processes at these times; -1: not known */
	size_t now;                /* the column to show: the last of the series, or what --state asks for */
	/* the column of the largest heap: the peak's, or the column of the series with most in use */
	size_t peak;
	bool has_peak; /* there is a peak's profile */
	/* path of a profile that has only addresses, for a hint at `heaptap symbolize`; NULL if there is
	 * none */
	char *nameless;
	size_t unread_count; /* files that were given and could not be read */
	enum read_state state;
	size_t session, session_count; /* its number from 1, 0 for all of them; how many there are */
};

/* Reads the operands for a report. pass_unread: no failure if some of the profiles can be read. Returns 0, or
 * the exit status after a line: 1, or 2 for a wrong pattern or no profile. The caller ends it with
 * profile_input_close() in any case. */
int profile_input_open(struct profile_input *input, const struct options *options, bool pass_unread);

/* The same for a comparison, with two columns: two operands, or the last two sessions of one operand. */
int profile_input_open_columns(struct profile_input *input, const struct options *options);
void profile_input_close(struct profile_input *input);

/* Rows with headings and short names, as tables for people have them. */
const struct traces *profile_input_tables(const struct profile_input *input);

/* Logs one line about the lack of memory: -ENOMEM, or -EFBIG for --max-memory. */
void profile_input_say_memory(const struct read_options *read, int err);

/* The measure and the column that --sort asks for. Returns 0, or 1 after a line that says what is missing. */
int profile_input_kind(
    const struct profile_input *input, enum sort_key key, enum measure_kind *kind, size_t *column);

#endif
