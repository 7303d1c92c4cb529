/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at a whole store, which is locked. Removes the files that the plan says must go, the folders that
 * are empty then, temporary files that nobody writes any more, and `timeline.jsonl` files that an earlier
 * version left in folders older than `days`. Files with other names are not touched,
 * and no link is followed. This is the most expensive work of the store: 2 us of CPU time for each file.
 */
#ifndef PPROF_STORE_STORE_SWEEP_H
#define PPROF_STORE_STORE_SWEEP_H

#include <stdint.h>

struct store_sweep {
	/* wanted */
	int64_t now_s;
	uint32_t days;
	uint64_t disk_bytes; /* budget */
	uint64_t need_bytes; /* room in the budget for the file that is to be written now */
	uint64_t free_bytes; /* as in store_plan.h */
	/* done */
	uint64_t used_bytes; /* of files and folders that are left */
	uint64_t thinned, thinned_bytes, evicted, evicted_bytes;
	uint64_t stuck; /* files that must go and cannot be removed */
};

/* 0 or -errno. After an error nothing was removed, and used_bytes is not set. */
int store_sweep_run(struct store_sweep *sweep, int store_fd);

#endif
