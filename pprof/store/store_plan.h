/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of a store must go: a pure function of their names, sizes and the time.
 *
 * By age: files older than `days` go. Of each process and class of snapshot (heap, heap by a cause, delta,
 * event) all files of the last hour stay, the first of each ten minutes of the last day, and the first of
 * each hour before. Peaks of a process replace each other: the last one stays. Ends (exit, oom) and peaks are
 * not thinned.
 *
 * By budget: if the rest is still too much, snapshots go first, then peaks and exits, then oom. Peaks and
 * ends beyond half of the budget go before the snapshots: otherwise processes that start and end all day
 * would leave nothing else. Within each of these steps the services that hold the most give first, down to a
 * common level, so that one service cannot push out the others. Within a service the oldest file goes first.
 *
 * Slots begin at whole ten minutes and hours of UTC, so a plan does not depend on when earlier ones were
 * made.
 */
#ifndef PPROF_STORE_STORE_PLAN_H
#define PPROF_STORE_STORE_PLAN_H

#include "pprof/store/store_list.h"

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
	/* If the files that stay count more than most_bytes (store_plan_charge()), files go until they count
	 * at most evict_to_bytes: so not every further file needs a plan. */
	uint64_t most_bytes, evict_to_bytes;
	/* The file system wants so many bytes back in any case. Snapshots go for that, but no peak and no
	 * end. */
	uint64_t free_bytes;
};

/* The bytes that a file of that size counts: whole blocks of 4 KiB, and its name in the folder. */
uint64_t store_plan_charge(uint64_t bytes);

/* fates: one for each file of the list. *left_bytes: what the kept files count. 0 or -ENOMEM. */
int store_plan_make(const struct store_list *list, const struct store_plan_limits *limits, uint8_t *fates,
    uint64_t *left_bytes);

#endif
