/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap daemon`: one per machine (or per user), in the foreground. It finds the processes that carry the
 * library, and profiles the ones that its rules choose, until it is told to end. The processes run on then
 * and sample into their regions, where the next daemon finds the samples.
 *
 * To the main loop of sampler/core/core.h the daemon adds:
 *
 *   notices     a process has loaded the library (finder.h)
 *   pidfds      a process has ended
 *   signals     SIGTERM and SIGINT end the daemon, SIGHUP reads the configuration again, SIGUSR1 takes a
 *               snapshot of every process
 *   off         the file `off` beside the control socket
 *   the look    the sweep of /proc, the store, the watchdog
 *
 * Stacks are sampled by the copy backend alone. So they wait in the regions while no daemon runs, and the
 * daemon opens no file for a probe that a target has chosen.
 */
#ifndef SAMPLER_CMD_DAEMON_DAEMON_H
#define SAMPLER_CMD_DAEMON_DAEMON_H

struct options;

/* Returns the exit status. */
int daemon_run(struct options *options);

#endif
