/* SPDX-License-Identifier: Apache-2.0 */
/* The match of one process and the rules: whether the process is profiled, and how. The crash-loop guard
 * and the limit on program runs can still refuse it. When the rules, the switch or the room have changed,
 * the processes that are known already are matched again. */
#ifndef SAMPLER_CMD_DAEMON_POLICY_MATCH_H
#define SAMPLER_CMD_DAEMON_POLICY_MATCH_H

#include "sampler/cmd/daemon/policy.h"
#include "sampler/cmd/daemon/process_table.h"

struct daemon;
struct target_plan;

struct policy_match {
	struct process_facts facts;
	struct policy policy;
};

/* Reads the facts, asks the rules, and notes in the entry what is known of the process. For free(). NULL
 * if the process is gone, if it executes another program by now, or if there is no memory. */
struct policy_match *policy_match_make(struct daemon *daemon, struct process_entry *entry, bool has_library);

/* True if the rules or the crash-loop guard refuse the process. Then the entry says why. */
bool policy_match_refuses(
    struct daemon *daemon, struct process_entry *entry, const struct policy_match *match);

/* The sampling period to begin with, in bytes. */
uint64_t policy_match_period(const struct daemon *daemon, const struct policy_match *match);

/* For struct finder_setup: the number of the account of any process, in the table or not. It equals
 * target_account() once the process has a plan. */
uint64_t policy_match_account(void *context, pid_t pid);

/* Fills in the plan of a process that is to be profiled. */
void policy_match_plan(struct target_plan *plan, struct daemon *daemon, const struct policy_match *match);

/* ---- processes that are known already */

/* The rules have changed, or sampling was switched off or on: asks the rules about every process again. */
void policy_match_all_again(struct daemon *daemon);

/* The same for one profiled process. */
void policy_match_again(struct daemon *daemon, struct process_entry *entry);

#endif
