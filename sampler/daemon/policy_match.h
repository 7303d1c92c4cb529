/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be done about one process: what the rules say of its facts, and the crash-loop guard. */
#ifndef SAMPLER_DAEMON_POLICY_MATCH_H
#define SAMPLER_DAEMON_POLICY_MATCH_H

#include "sampler/daemon/process_table.h"
#include "sampler/rules/policy.h"

struct daemon;
struct target_plan;

struct policy_match {
	struct process_facts facts;
	struct policy policy;
};

/* Reads the facts, decides, and notes in the entry what is known of the process. For free(). NULL: it is
 * gone, executes another program than the entry is of, or there is no memory. */
struct policy_match *policy_match_make(struct daemon *daemon, struct process_entry *entry, bool has_library);

/* True: it is not to be profiled, and the entry says why. */
bool policy_match_refuses(
    struct daemon *daemon, struct process_entry *entry, const struct policy_match *match);

/* The period to begin with. */
uint64_t policy_match_period(const struct daemon *daemon, const struct policy_match *match);

/* Whose share a process takes, which is none that we know of, as a number: target_account() once it has a
 * plan. For struct finder_setup. */
uint64_t policy_match_account(void *context, pid_t pid);

void policy_match_plan(struct target_plan *plan, struct daemon *daemon, const struct policy_match *match);

/* Whether one more image of such a process may be profiled: images have their share of our memory, and
 * accounts (a login user, a system unit, a container) have half of that each. Root in a container is no
 * exception. */
bool policy_match_has_room(const struct daemon *daemon, const struct process_facts *facts);

#endif
