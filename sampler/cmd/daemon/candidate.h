/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a process that the finder has met:
 *
 *   its region can be opened   if the rules choose the process, sampling is turned on, unless an earlier
 *                              daemon has left it on
 *   it has no library          it is attached to, if a rule says so (attach_jobs.h)
 *   neither                    the table of processes notes why it is not profiled
 *
 * And what becomes of a profiled process at its end: the crash guard hears of it.
 */
#ifndef SAMPLER_CMD_DAEMON_CANDIDATE_H
#define SAMPLER_CMD_DAEMON_CANDIDATE_H

#include <stdbool.h>
#include <sys/types.h>

struct daemon;

/* For struct finder_setup; context is the daemon. */
bool candidate_look(void *context, pid_t pid, bool noticed);
void candidate_opened(void *context, pid_t pid);
void candidate_passed(void *context, pid_t pid);
void candidate_swept(void *context);

/* If the descriptor is the pidfd of a profiled process, notes its end and returns true. */
bool candidate_ended(struct daemon *daemon, int fd);

/* Stops sampling in every region. The processes stay known; policy_match_all_again() begins again. */
void candidate_stop_all(struct daemon *daemon);

#endif
