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
#ifndef SAMPLER_RULES_DECISION_H
#define SAMPLER_RULES_DECISION_H

#include "sampler/identity/process_facts.h"
#include "sampler/rules/rules.h"

enum decision_verdict {
	DECISION_PROFILE,
	DECISION_DISABLED,   /* HEAPTAP_DISABLE=1 */
	DECISION_BUILT_IN,   /* the built-in deny list */
	DECISION_DENIED,     /* [deny] */
	DECISION_NOT_WANTED, /* profile = no */
	DECISION_NO_LIBRARY, /* it does not carry the library, and nothing says attach = yes */
};

enum { DECISION_REASON_BYTES = 512 };

struct decision {
	enum decision_verdict verdict;
	char reason[DECISION_REASON_BYTES]; /* for status: why not; "" of DECISION_PROFILE */
	char service[SERVICE_NAME_BYTES];   /* for the store; also of what is not profiled */
	char service_name[256];             /* the label, not cleaned: "shop/checkout" */
	/* How: borrowed from the rules. With attach set and no library in the process, attach to it. */
	const struct rules_service *how;
	bool by_rule; /* a [service NAME] matched */
};

void decision_make(struct decision *decision, const struct rules *rules, const struct process_facts *facts);

/* Its labels, for the comment: those of the rule, then those of its facts. 0 or -ENOMEM. */
int decision_labels(struct labels *labels, const struct decision *decision, const struct process_facts *facts,
    const char *host);

#endif
