/* SPDX-License-Identifier: Apache-2.0 */
/* The lines at the start of `heaptap record`. */
#ifndef SAMPLER_SESSION_START_LINE_H
#define SAMPLER_SESSION_START_LINE_H

#include "sampler/cli/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What is sampled, where profiles go, how to take one now. heap: the heap is sampled too, or alone. */
void start_line_make(const struct options *options, bool heap, pid_t command, char *text, size_t text_bytes);

/* Logs them, unless the user wants none (-q), nothing can be sampled, or COMMAND cannot be executed: these
 * are said by others. seen: COMMAND will load our library, if that is preloaded. */
void start_line_say(const struct options *options, bool seen, pid_t command);

#endif
