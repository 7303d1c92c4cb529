/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of the option table, for the files that hold rows: options.c (recording) and options_read.c (reading
 * profiles). Everybody else sees options.h.
 */
#ifndef SAMPLER_CLI_OPTION_H
#define SAMPLER_CLI_OPTION_H

#include "sampler/cli/options.h"

struct option {
	unsigned int commands;
	char letter; /* '\0': the long form only */
	const char *name;
	const char *value;          /* "BYTES"; NULL: takes none, or one of `choices` */
	const char *const *choices; /* NULL-terminated */
	const char *allowed;        /* what a value may be, for error lines; NULL with choices */
	int (*set)(struct options *options, const char *value); /* 0 or -EINVAL */
	const char *help;                                       /* lines separated by '\n' */
};

/* The rows of the reading commands. */
extern const struct option options_read_table[];
extern const size_t options_read_count;

/* The rows of perf events, and what they ask of each other: 0, or -EINVAL with one line in `error`. */
extern const struct option options_events_table[];
extern const size_t options_events_count;
int options_events_check(const struct options *options, char *error, size_t error_bytes);

/* The whole table, as one: recording first. NULL after the last row. */
const struct option *option_at(size_t index);
bool option_takes_value(const struct option *option);

/* "BYTES" or "auto|uprobe|copy" */
void option_value_describe(const struct option *option, char *text, size_t text_bytes);

#endif
