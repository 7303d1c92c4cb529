/* SPDX-License-Identifier: Apache-2.0 */
/* What is decided about processes that are known already: when the rules, the switch or the room have
 * changed. */
#ifndef SAMPLER_DAEMON_POLICY_RECHECK_H
#define SAMPLER_DAEMON_POLICY_RECHECK_H

#include <stdbool.h>

struct daemon;
struct process_entry;

/* The rules have changed, or the switch was moved: decides again about every process that is known. */
void policy_recheck_all(struct daemon *daemon);

/* The same of one that is profiled. */
void policy_recheck_one(struct daemon *daemon, struct process_entry *entry);

#endif
