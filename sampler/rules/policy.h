/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules say of a process: profiled or not and why, and how. A pure function of its facts.
 *
 *   1. HEAPTAP_DISABLE=1 in its environment
 *   2. the built-in deny list, then [deny]: exclusion wins
 *   3. the first [service NAME] that matches: profile = no leaves it alone
 *   4. no such section: profiled by [service] if it carries the library
 *   5. a process without the library: only by a section that matches and has attach = yes
 */
#ifndef SAMPLER_RULES_POLICY_H
#define SAMPLER_RULES_POLICY_H

#include "sampler/identity/process_facts.h"
#include "sampler/rules/rules.h"

enum policy_answer {
	POLICY_PROFILE,
	POLICY_DISABLED,   /* HEAPTAP_DISABLE=1 */
	POLICY_BUILT_IN,   /* the built-in deny list */
	POLICY_DENIED,     /* [deny] */
	POLICY_NOT_WANTED, /* profile = no */
	POLICY_NO_LIBRARY, /* it does not carry the library, and nothing says attach = yes */
};

enum { POLICY_REASON_BYTES = 512 };

struct policy {
	enum policy_answer answer;
	char reason[POLICY_REASON_BYTES]; /* for status: why not; "" of POLICY_PROFILE */
	char service[SERVICE_NAME_BYTES]; /* for the store; also of what is not profiled */
	char service_name[256];           /* the label, not cleaned: "shop/checkout" */
	/* How: borrowed from the rules. With attach set and no library in the process, attach to it. */
	const struct rules_service *how;
	bool by_rule; /* a [service NAME] matched */
};

void policy_decide(struct policy *policy, const struct rules *rules, const struct process_facts *facts);

/* Its labels, for the comment: those of the rule, then those of its facts. 0 or -ENOMEM. */
int policy_labels(
    struct labels *labels, const struct policy *policy, const struct process_facts *facts, const char *host);

#endif
