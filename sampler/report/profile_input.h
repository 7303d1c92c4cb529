/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of all commands that read profiles: turns files and filters from the command line into traces.
 *
 * Several profiles are a series if they are states of one process: a column each, in the order of their
 * times. Otherwise they are added up. A peak profile among others gets its own column, the last.
 */
#ifndef SAMPLER_REPORT_PROFILE_INPUT_H
#define SAMPLER_REPORT_PROFILE_INPUT_H

#include "pprof/analysis/filter.h"
#include "pprof/profile/origin.h"
#include "pprof/analysis/traces.h"
#include "sampler/cli/options.h"

enum { PROFILE_INPUT_ERROR_BYTES = 1024 };

struct profile;

struct profile_input {
	/* path of a profile that has addresses only, of which `heaptap symbolize` makes names; NULL: none */
	const char *nameless;
	struct traces traces;
	struct filter filter;
	struct origin *origins; /* of each column; of several files added up, the first one's */
	size_t file_count;
	size_t series_count; /* columns of the series, 1 if there is none */
	size_t now;          /* the column to show: the last of the series */
	/* column of the largest heap: the peak's, or that of the series with most in use */
	size_t peak;
	bool has_peak; /* there is a peak's profile */
};

/* Reads the operands for a report. On failure one line is printed. Returns the exit status: 0, 1, or 2
 * for a wrong pattern. Either way the caller ends it with profile_input_close(). */
int profile_input_open(struct profile_input *input, const struct options *options);

/* The same, with a column for each operand, in the order given. */
int profile_input_open_columns(struct profile_input *input, const struct options *options);
void profile_input_close(struct profile_input *input);

/* Reads one profile (profile_free()). held_bytes: memory of all profiles so far; this one's is added.
 * Returns 0, or -errno after a line that says why. */
int profile_input_read(
    const char *path, const struct read_options *read, size_t *held_bytes, struct profile **profile);

/* Logs one line about the lack of memory: -ENOMEM, or -EFBIG for --max-memory. */
void profile_input_say_memory(const struct read_options *read, int err);

/* The measure and the column that --sort asks for. Returns 0, or 1 after a line that says what is missing. */
int profile_input_kind(
    const struct profile_input *input, enum sort_key key, enum measure_kind *kind, size_t *column);

#endif
