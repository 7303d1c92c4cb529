/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be done about one process: what the rules say of its facts, and the crash-loop guard. */
#ifndef SAMPLER_DAEMON_VERDICT_H
#define SAMPLER_DAEMON_VERDICT_H

#include "sampler/daemon/roster.h"
#include "sampler/rules/decision.h"

struct daemon;
struct target_plan;

struct verdict {
	struct process_facts facts;
	struct decision decision;
};

/* Reads the facts, decides, and notes in the entry what is known of the process. For free(). NULL: it is
 * gone, executes another program than the entry is of, or there is no memory. */
struct verdict *verdict_make(struct daemon *daemon, struct roster_entry *entry, bool has_library);

/* True: it is not to be profiled, and the entry says why. */
bool verdict_is_no(struct daemon *daemon, struct roster_entry *entry, const struct verdict *verdict);

/* The period to begin with. */
uint64_t verdict_period(const struct daemon *daemon, const struct verdict *verdict);

/* Whose share a process takes, which is none that we know of, as a number: target_account() once it has a
 * plan. For struct finder_setup. */
uint64_t verdict_account(void *context, pid_t pid);

void verdict_plan(struct target_plan *plan, struct daemon *daemon, const struct verdict *verdict);

/* The entry is refused, for a reason. Returns true. */
__attribute__((format(printf, 2, 3))) bool verdict_refuse(
    struct roster_entry *entry, const char *format, ...);

#endif
