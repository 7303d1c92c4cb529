/* SPDX-License-Identifier: Apache-2.0 */
/* What is decided about processes that are known already: when the rules, the switch or the room have
 * changed. */
#ifndef SAMPLER_CMD_DAEMON_POLICY_RECHECK_H
#define SAMPLER_CMD_DAEMON_POLICY_RECHECK_H

#include <stdbool.h>

struct daemon;
struct process_entry;

/* The rules have changed, or sampling was switched off or on: asks the rules about every process again. */
void policy_recheck_all(struct daemon *daemon);

/* The same for one profiled process. */
void policy_recheck_one(struct daemon *daemon, struct process_entry *entry);

#endif
