/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of all options, for the parser, help, manual pages and completions. The rows of record, attach and
 * adopt are in options_record.c, those of the commands that read profiles in options_read.c, all others in
 * options.c.
 */
#ifndef SAMPLER_CMD_CLI_OPTIONS_ROWS_H
#define SAMPLER_CMD_CLI_OPTIONS_ROWS_H

#include "sampler/cmd/cli/option.h"

extern const struct option_table options_record, options_read;

/* All of them, record's first: for option_at() and help_command(). */
extern const struct option_table *const options_tables[];

/* Setters of --quiet and --verbose. */
int options_set_quiet(struct options *options, const char *value);
int options_set_verbose(struct options *options, const char *value);

/* Adds "4711,4712", each once: 0 or -EINVAL. */
int options_add_pids(struct options *options, const char *value);

/* Do record's options fit together? 0, or -EINVAL with one line appended to `error`. */
int options_record_check(const struct options *options, char *error, size_t error_bytes);

#endif
