/* SPDX-License-Identifier: Apache-2.0 */
/* What commands say when there is nothing to show: no profile yet, or no stack that the options let
 * through. */
#ifndef SAMPLER_CMD_REPORT_NOTHING_H
#define SAMPLER_CMD_REPORT_NOTHING_H

#include "pprof/analysis/traces.h"
#include "sampler/cmd/cli/options.h"

#include <stdbool.h>
#include <stddef.h>

/* What is being recorded into the folder now, for a user who looks there before there is a profile: prints a
 * line for each process. Asks only sessions of root and of our own user. False if there is none. */
bool nothing_yet_say(const char *folder);

/* True if one of --focus, --ignore, --module, --thread, --size and --age was given, and no stack is left.
 * `text` becomes a line, which names the options. */
bool nothing_matches(
    const struct traces *traces, const struct read_options *read, char *text, size_t text_bytes);

/* The same for output that programs parse: the line goes to stderr. */
void nothing_matches_say(const struct traces *traces, const struct read_options *read);

#endif
