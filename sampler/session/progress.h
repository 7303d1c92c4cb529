/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a user who waits after COMMAND's end how many profiles are still to be written: rarer and rarer. */
#ifndef SAMPLER_SESSION_PROGRESS_H
#define SAMPLER_SESSION_PROGRESS_H

#include "sampler/snapshot/scheduler.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed at first. */
struct progress {
	uint64_t ended_ns; /* COMMAND's end; 0: not yet */
	uint64_t after_ns; /* time after it at which the progress is told next */
	uint64_t alive_ns; /* when the front was told last that somebody works */
};

/* COMMAND has ended by now. True the first time. now_ns: monotonic. */
bool progress_begin(struct progress *progress, uint64_t now_ns);

/* True once a second: the front is to be told that we are alive. */
bool progress_is_alive(struct progress *progress, uint64_t now_ns);

/* Logs one line if it is time for one and profiles are still to be written. */
void progress_tell(struct progress *progress, const struct scheduler *scheduler, uint64_t now_ns);

#endif
