/* SPDX-License-Identifier: Apache-2.0 */
/* What --focus, --ignore, --module, --thread, --size and --age have left of a profile. */
#ifndef SAMPLER_REPORT_SELECTION_H
#define SAMPLER_REPORT_SELECTION_H

#include "pprof/analysis/traces.h"
#include "sampler/cli/options.h"

#include <stdbool.h>
#include <stddef.h>

/* True if such an option was given and no stack is left: `text` then says so, in one line that names them. */
bool selection_is_empty(
    const struct traces *traces, const struct read_options *read, char *text, size_t text_bytes);

/* The same, for output that others parse: the line goes to stderr. */
void selection_say_empty(const struct traces *traces, const struct read_options *read);

#endif
