/* SPDX-License-Identifier: Apache-2.0 */
/* The lines at the start of `heaptap record`. */
#ifndef SAMPLER_CMD_RECORD_START_LINE_H
#define SAMPLER_CMD_RECORD_START_LINE_H

#include "sampler/cmd/cli/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What is known when COMMAND starts. */
struct start_line {
	pid_t command;
	bool heap;        /* the heap is sampled */
	int socket_error; /* why the sampler has no control socket, as -errno; 0: it has one */
};

/* Writes what is sampled, where profiles go, and how to take a snapshot now, or why nobody can. */
void start_line_make(
    const struct options *options, const struct start_line *start, char *text, size_t text_bytes);

/* Logs these lines, and what will not be seen of COMMAND. Logs nothing with -q, if nothing can be sampled,
 * or if COMMAND cannot be executed, which other lines say. start->heap: COMMAND will load our library if that
 * is preloaded. */
void start_line_say(const struct options *options, const struct start_line *start);

#endif
