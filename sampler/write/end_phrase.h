/* SPDX-License-Identifier: Apache-2.0 */
/* How a process ended, in words. */
#ifndef SAMPLER_WRITE_END_PHRASE_H
#define SAMPLER_WRITE_END_PHRASE_H

#include "sampler/intake/target.h"
#include "sampler/linux/pidfd.h"

#include <stddef.h>

enum {
	END_PHRASE_BYTES = TARGET_UNPROFILED_BYTES + 256
}; /* the longest phrase, with what the OOM killer did */

/* "pid 4711", or "pid unknown" for 0. Returns `text`. */
enum { END_PHRASE_PID_BYTES = 16 };
const char *end_phrase_pid(pid_t pid, char text[END_PHRASE_PID_BYTES]);

/* "exited with status 0", "was killed by SIGKILL" */
void end_phrase_plain(const struct target *target, char *text, size_t text_bytes);

/* The same, with what the OOM killer did, if it may have killed the process. */
void end_phrase_describe(
    const struct target *target, const struct oom_watch *watch, char *text, size_t text_bytes);

/* The same as the cause of a last profile: "the process exited with status 0". */
void end_phrase_cause(
    const struct target *target, const struct oom_watch *watch, char *text, size_t text_bytes);

/* How important the end is to the user, the most important last. */
enum end_phrase_alarm {
	END_PHRASE_QUIET,  /* it exited, or a pipe's reader had gone (SIGPIPE), as is usual in scripts */
	END_PHRASE_TOLD,   /* a signal that asks a process to end: SIGTERM, SIGINT */
	END_PHRASE_KILLED, /* it crashed, or was killed by SIGKILL */
};
enum end_phrase_alarm end_phrase_alarm(const struct target *target);

#endif
