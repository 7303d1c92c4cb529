/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions without a heap (`record --no-heap`): nothing is preloaded, there is no shared memory, only perf
 * events.
 */
#ifndef SAMPLER_SESSION_EVENT_SESSION_H
#define SAMPLER_SESSION_EVENT_SESSION_H

struct options;

/* The sampler of a COMMAND; entered as session_run is. */
int event_session_run(const struct options *options, int front_fd);

/* `record --no-heap --pid PID`: in the foreground, until the process ends or we are told to stop (SIGINT,
 * SIGTERM, SIGHUP: the process goes on). Returns the exit status. */
int event_session_pid(const struct options *options);

#endif
