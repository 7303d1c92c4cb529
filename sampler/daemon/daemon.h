/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heaptap daemon`: one per machine (or per user), in the foreground. It finds the processes that carry the library,
 * and profiles those that its rules choose, until it is told to end; they run on, and sample into their
 * regions, where the next daemon finds what they have.
 *
 * One thread, one epoll set:
 *
 *   notices     a process has loaded the library (finder.h)
 *   pidfds      a process has ended
 *   signals     SIGTERM, SIGINT end it; SIGHUP reads the configuration again; SIGUSR1 takes a snapshot of all
 *   control     clients of the control socket
 *   off         the file `off` beside the control socket
 *   the tick    stacks in the regions, snapshots that are due, the sweep, the watchdog
 *
 * Stacks are sampled by the copy backend alone: they wait in the regions while no daemon is there, and no file
 * of the target's choice is opened for a probe.
 */
#ifndef SAMPLER_DAEMON_DAEMON_H
#define SAMPLER_DAEMON_DAEMON_H

struct options;

/* Returns the exit status. */
int daemon_run(struct options *options);

#endif
