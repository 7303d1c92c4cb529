/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands that read profiles share: files and filters from the command line, into traces.
 *
 * Several profiles are a series if they are states of one process: a column each, in the order of their
 * times. Otherwise they are added up. A peak among others has a column of its own, the last.
 */
#ifndef SAMPLER_READING_H
#define SAMPLER_READING_H

#include "pprof/filter.h"
#include "pprof/origin.h"
#include "pprof/traces.h"
#include "sampler/options.h"

enum { READING_ERROR_BYTES = 1024 };

struct reading {
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

/* The operands, as a report wants them. On failure one line is printed. Returns the exit status: 0, 1, or 2
 * for a wrong pattern. Either way the caller ends it with reading_close(). */
int reading_open(struct reading *reading, const struct options *options);

/* Each operand a column, in the order given. */
int reading_open_columns(struct reading *reading, const struct options *options);
void reading_close(struct reading *reading);

/* What --sort asks for and the column it is in. Returns 0, or 1 after a line that says what is missing. */
int reading_kind(const struct reading *reading, enum sort_key key, enum measure_kind *kind, size_t *column);

#endif
