/* SPDX-License-Identifier: Apache-2.0 */
/* What the user is told when a process is sampled from now on. */
#ifndef SAMPLER_CMD_RECORD_START_LINES_H
#define SAMPLER_CMD_RECORD_START_LINES_H

#include "sampler/cmd/cli/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What is known then. */
struct start {
	pid_t command;
	bool heap;        /* the heap is sampled */
	int socket_error; /* why the sampler has no control socket, as -errno; 0: it has one */
};

/* Writes lines: what is sampled, where profiles go, and how to take a snapshot now, or why nobody can; of a
 * process that was attached to, how to detach. */
void start_lines_describe(
    const struct options *options, const struct start *start, char *text, size_t text_bytes);

/* Logs them. */
void start_lines_say(const struct options *options, const struct start *start);

#endif
