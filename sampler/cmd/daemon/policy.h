/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy for a process, by the rules: whether it is profiled, how, or why not.
 *
 *   1. HEAPTAP_DISABLE=1 in its environment
 *   2. the built-in deny list (policy_never()), then [deny]: they win over any [service]
 *   3. the first [service NAME] that matches: it is profiled, unless profile = no
 *   4. no [service NAME] matches: it is profiled by [service]
 *   5. a process without the library is profiled only if a [service NAME] matches that has attach = yes
 *
 * The crash-loop guard and the limit on program runs (account_share.h) can still refuse a process that the
 * rules choose. When the configuration was read again, or when sampling was switched on again, the processes
 * that are known already are matched again.
 */
#ifndef SAMPLER_CMD_DAEMON_POLICY_H
#define SAMPLER_CMD_DAEMON_POLICY_H

#include "sampler/cmd/daemon/process_facts.h"
#include "sampler/cmd/daemon/process_table.h"
#include "sampler/cmd/daemon/rules.h"

struct daemon;
struct target_plan;

/* ---- the decision, a pure function of the facts */

enum policy_answer {
	POLICY_PROFILE,
	POLICY_DISABLED,   /* HEAPTAP_DISABLE=1 */
	POLICY_BUILT_IN,   /* the built-in deny list */
	POLICY_DENIED,     /* [deny] */
	POLICY_NOT_WANTED, /* profile = no */
	POLICY_NO_LIBRARY, /* it does not carry the library, and no rule says attach = yes */
};

enum { POLICY_REASON_BYTES = 512 };

struct policy {
	enum policy_answer answer;
	char reason[POLICY_REASON_BYTES]; /* why the process is not profiled; "" with POLICY_PROFILE */
	char service[SERVICE_NAME_BYTES]; /* its name in the store; set also if it is not profiled */
	char service_name[256];           /* the label, not cleaned: "shop/checkout" */
	/* How to profile the process; borrowed from the rules. */
	const struct rules_service *how;
	bool by_rule; /* a [service NAME] matched */
};

/* The programs that are never profiled, whatever the rules say: pid 1, and those that everything else on the
 * machine depends on. They are known by the name of the executable's file and by comm. A process that takes
 * such a name only denies itself. Returns their group ("systemd or init"), or NULL. Pure. */
const char *policy_never(const struct process_facts *facts);

/* Decides about a process. */
void policy_decide(struct policy *policy, const struct rules *rules, const struct process_facts *facts);

/* Makes the labels of the process: those of the rule, then those of its facts. 0 or -ENOMEM. */
int policy_labels(
    struct labels *labels, const struct policy *policy, const struct process_facts *facts, const char *host);

/* ---- the match of one process and the rules */

struct policy_match {
	struct process_facts facts;
	struct policy policy;
};

/* Reads the facts, asks the rules, and notes in the entry what is known of the process. The caller frees the
 * result by free(). NULL if the process is gone, if it executes another program by now, or if there is no
 * memory. */
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

/* The configuration was read again, or sampling was switched on again: asks the rules about every process. */
void policy_match_all_again(struct daemon *daemon);

/* The same for one profiled process. */
void policy_match_again(struct daemon *daemon, struct process_entry *entry);

#endif
