/* SPDX-License-Identifier: Apache-2.0 */
/* The line that says that --focus, --ignore, --module, --thread, --size and --age leave nothing. */
#ifndef SAMPLER_CMD_REPORT_NO_MATCH_H
#define SAMPLER_CMD_REPORT_NO_MATCH_H

#include "pprof/analysis/traces.h"
#include "sampler/cmd/cli/options.h"

#include <stdbool.h>
#include <stddef.h>

/* True if such an option was given and no stack is left. `text` becomes the line, which names the options. */
bool no_match_describe(
    const struct traces *traces, const struct read_options *read, char *text, size_t text_bytes);

/* The same for output that programs parse: the line goes to stderr. */
void no_match_say(const struct traces *traces, const struct read_options *read);

#endif
