/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU time that looks at the processes of one account may take: a bucket that time fills again. How
 * long a look takes is up to the process (its maps may have 65,530 lines, and more), so whoever has spent
 * what he may have is passed by for a while, and nobody else is. Pure.
 */
#ifndef SAMPLER_DAEMON_SCAN_BUDGET_H
#define SAMPLER_DAEMON_SCAN_BUDGET_H

#include "pprof/text/throttle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SCAN_BUDGET_ACCOUNTS =
	    256,               /* that have spent some; beyond, who has spent the least of it is forgotten */
	SCAN_BUDGET_PART = 20, /* a bucket is filled with one in so many nanoseconds */
};

/* All zero, but for burst_ns. */
struct scan_budget {
	uint64_t burst_ns; /* in a full bucket */
	size_t count;
	struct scan_budget_bucket {
		uint64_t account;
		struct throttle throttle; /* of CPU time in nanoseconds; a look may leave a debt */
	} buckets[SCAN_BUDGET_ACCOUNTS];
};

/* Whether anybody has nothing left: only then need it be found out whose a process is. */
bool scan_budget_is_needed(struct scan_budget *share, uint64_t now_ns);

bool scan_budget_allows(const struct scan_budget *share, uint64_t account);
void scan_budget_spend(struct scan_budget *share, uint64_t account, uint64_t cpu_ns, uint64_t now_ns);

#endif
