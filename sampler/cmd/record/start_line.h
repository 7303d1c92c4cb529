/* SPDX-License-Identifier: Apache-2.0 */
/* The lines at the start of `heaptap record`. */
#ifndef SAMPLER_CMD_RECORD_START_LINE_H
#define SAMPLER_CMD_RECORD_START_LINE_H

#include "sampler/cmd/cli/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Writes what is sampled, where profiles go, and how to take a snapshot now. heap: the heap is sampled. */
void start_line_make(const struct options *options, bool heap, pid_t command, char *text, size_t text_bytes);

/* Logs these lines, and what will not be seen of COMMAND. Logs nothing with -q, if nothing can be sampled,
 * or if COMMAND cannot be executed, which other lines say. seen: COMMAND will load our library if that is
 * preloaded. */
void start_line_say(const struct options *options, bool seen, pid_t command);

#endif
