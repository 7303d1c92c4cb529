/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a process that was found to one that is profiled, or to the reason why it is not: opens its offer,
 * asks the rules, turns it on; takes up what an earlier daemon had turned on; notes its end.
 */
#ifndef SAMPLER_DAEMON_CANDIDATE_H
#define SAMPLER_DAEMON_CANDIDATE_H

#include <stdbool.h>
#include <sys/types.h>

struct daemon;

/* For struct finder_setup. */
bool candidate_look(void *context, pid_t pid, bool noticed);
void candidate_opened(void *context, pid_t pid);
void candidate_passed(void *context, pid_t pid);
void candidate_swept(void *context);

/* If the descriptor is the pidfd of a process that was handed over, notes its end and returns true. */
bool candidate_ended(struct daemon *daemon, int fd);

/* Stops sampling in every region. The processes are still known, and policy_recheck_all begins again. */
void candidate_stop_all(struct daemon *daemon);

#endif
