/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler process of one `heaptap record`: see sampler/session/front.h for how it is entered. */
#ifndef SAMPLER_SESSION_SESSION_H
#define SAMPLER_SESSION_SESSION_H

#include "sampler/snapshot/snapshot_settings.h"

#include <sys/types.h>

struct options;
struct event_scheduler;

/* Serves one run, talking to the front process over front_fd (sampler/session/front_message.h). Returns the
 * exit status. */
int session_run(const struct options *options, int front_fd);

/* `heaptap adopt PID`: goes on with the books of a target whose sampler has died, until it ends. Returns the
 * exit status. */
int session_adopt(struct options *options);

/* What of the options is about snapshots. */
struct snapshot_settings session_settings(const struct options *options);

/* Puts the counters on COMMAND, before its exec, and tells the front: ATTACHED or FAILED. `error`: why there
 * are no events although some are asked for. */
void session_attach_command(struct event_scheduler *events, pid_t command, int front_fd, int error);

#endif
