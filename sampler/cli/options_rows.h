/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all options: for options.c, which parses by them, and for completions and the manual page. */
#ifndef SAMPLER_CLI_OPTIONS_ROWS_H
#define SAMPLER_CLI_OPTIONS_ROWS_H

#include "sampler/cli/option.h"

extern const struct option_table
    options_record; /* options_record.c: recording, and what every command takes */
extern const struct option_table options_events; /* options_events.c: recording perf events */
extern const struct option_table options_read;   /* options_read.c: reading profiles */
extern const struct option_table options_push;   /* options_push.c: sending profiles */
extern const struct option_table options_serve;  /* options_serve.c: the web server */
extern const struct option_table options_daemon; /* options_daemon.c: the daemon, and those who ask it */

/* All of them, recording first; NULL after the last. */
const struct option *options_row(size_t index);

/* Adds "4711,4712", each once: 0 or -EINVAL. */
int options_add_pids(struct options *options, const char *value);

/* Checks that the options of perf events fit together: 0, or -EINVAL with one line appended to `error`. */
int options_events_check(const struct options *options, char *error, size_t error_bytes);

#endif
