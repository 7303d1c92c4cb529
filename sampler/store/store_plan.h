/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of a store must go: a pure function of their names, sizes and the time.
 *
 * By age: files of more than `days` go. Of each process and class of snapshot (heap, heap by a cause,
 * delta, event) stay all of the last hour, the first of each ten minutes of the last day, and the first of
 * each hour before. Of peaks and time lines of a process, which replace each other, stays the last. Ends
 * (exit, oom) and peaks are not thinned.
 *
 * By budget: what is still too much goes in this order: snapshots, time lines and the like, then peaks and
 * exits, then oom. Peaks and ends beyond half of the budget go before the snapshots, or processes that
 * start and end all day would leave nothing else. Of each of these the services that hold the most give
 * first, down to a common level, so that one service cannot push out the others; within a service the
 * oldest goes first.
 *
 * Slots begin at whole ten minutes and hours of UTC, so a plan does not depend on when earlier ones were
 * made.
 */
#ifndef SAMPLER_STORE_STORE_PLAN_H
#define SAMPLER_STORE_STORE_PLAN_H

#include "pprof/service/store_list.h"

#include <stddef.h>
#include <stdint.h>

enum store_plan_fate {
	STORE_PLAN_KEEP,
	STORE_PLAN_THIN,    /* by age */
	STORE_PLAN_EXPIRED, /* older than days */
	STORE_PLAN_EVICT,   /* by budget */
};

struct store_plan_limits {
	int64_t now_s;
	uint32_t days;
	/* For the files that stay, as store_plan_charge() counts them: if they are more than `most`, files
	 * go until they are no more than `evict_to`, so that not every further file needs a plan. */
	uint64_t most_bytes, evict_to_bytes;
	/* So much is wanted back in any case, for the file system's sake: snapshots go for that, but no
	 * peak and no end. */
	uint64_t free_bytes;
};

/* What a file of that size counts: whole blocks of 4 KiB, and its name in the folder. */
uint64_t store_plan_charge(uint64_t bytes);

/* fates: room for list->file_count. Returns 0 or -ENOMEM; *left_bytes: what the kept files count. */
int store_plan_make(const struct store_list *list, const struct store_plan_limits *limits, uint8_t *fates,
    uint64_t *left_bytes);

#endif
