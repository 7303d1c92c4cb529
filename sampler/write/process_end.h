/* SPDX-License-Identifier: Apache-2.0 */
/* How a process ended, in words. */
#ifndef SAMPLER_WRITE_PROCESS_END_H
#define SAMPLER_WRITE_PROCESS_END_H

#include "sampler/intake/target.h"
#include "sampler/linux/pidfd.h"

#include <stddef.h>

enum {
	PROCESS_END_BYTES = TARGET_UNPROFILED_BYTES + 256
}; /* the longest phrase, with what the OOM killer did */

/* "pid 4711", or "pid unknown" for 0. Returns `text`. */
enum { PROCESS_END_PID_BYTES = 16 };
const char *process_end_pid(pid_t pid, char text[PROCESS_END_PID_BYTES]);

/* "exited with status 0", "was killed by SIGKILL" */
void process_end_phrase(const struct target *target, char *text, size_t text_bytes);

/* The same, with what the OOM killer did, if it may have killed the process. */
void process_end_describe(
    const struct target *target, const struct oom_watch *watch, char *text, size_t text_bytes);

/* The same as the cause of a last profile: "the process exited with status 0". */
void process_end_cause(
    const struct target *target, const struct oom_watch *watch, char *text, size_t text_bytes);

/* How important the end is to the user, the most important last. */
enum process_end_alarm {
	PROCESS_END_QUIET,  /* it exited, or a pipe's reader had gone (SIGPIPE), as is usual in scripts */
	PROCESS_END_TOLD,   /* a signal that asks a process to end: SIGTERM, SIGINT */
	PROCESS_END_KILLED, /* it crashed, or was killed by SIGKILL */
};
enum process_end_alarm process_end_alarm(const struct target *target);

#endif
