/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at a whole store, which is locked: what the plan says must go is removed, with folders that are
 * empty then and temporary files that nobody writes any more. Only what bears names of the store's is ever
 * touched, and no link is followed. The most expensive thing that the store does: 1 us for each name and 2
 * us for each size.
 */
#ifndef SAMPLER_STORE_STORE_SWEEP_H
#define SAMPLER_STORE_STORE_SWEEP_H

#include <stdint.h>

struct store_sweep {
	/* wanted */
	int64_t now_s;
	uint32_t days;
	uint64_t disk_bytes; /* budget */
	uint64_t need_bytes; /* of it for what is to be written now */
	uint64_t free_bytes; /* to free in any case, as in store_plan.h */
	/* done */
	uint64_t used_bytes; /* of files and folders that are left */
	uint64_t thinned, thinned_bytes, evicted, evicted_bytes;
	uint64_t stuck; /* files that must go and cannot be removed */
};

/* 0, or -errno: then nothing was removed, and used_bytes is not set. */
int store_sweep_run(struct store_sweep *sweep, int store_fd);

#endif
