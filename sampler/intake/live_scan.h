/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live scan: which sampled blocks a process has now, and which it had at its peak, copied from the shared
 * table in one pass (proto/region.h says how to recognize the peak's blocks).
 *
 * Take it before the rings are drained, so that the stack of every block is in the books when heap_view.h
 * needs it. The process keeps running: a block allocated or freed during the pass may be in it or not. If the
 * peak moves during the pass, the pass is repeated; if it keeps moving, the last pass counts, and
 * peak_missing says how many blocks are missing.
 */
#ifndef SAMPLER_INTAKE_LIVE_SCAN_H
#define SAMPLER_INTAKE_LIVE_SCAN_H

#include "sampler/intake/region.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_scan_block {
	struct slot_copy slot;
	uint32_t number; /* of the slot */
	bool live, peak;
};

struct live_scan {
	struct live_scan_block *blocks;
	size_t count, capacity;
	struct tally counted; /* what the process had counted just before */
	uint64_t now_ns;      /* on the clock of the blocks' times */
	uint64_t peak_order;  /* 0: nothing was ever live */
	uint64_t peak_ns;     /* not later than now_ns */
	/* samples that the process counted at its peak and that were not found; below 0: too many were
	 * found */
	int64_t peak_missing;
};

/* Returns 0 or -errno. The caller must call live_scan_fini, also after an error. */
int live_scan_take(struct live_scan *live_scan, const struct region *region, uint32_t place);
void live_scan_fini(struct live_scan *live_scan);

/* The live blocks alone, one slot after the other, without a copy of all. Of an offered region no page is
 * looked at that nobody has written: its process says which segments are whose, and the memory would be
 * charged to us. */
struct live_scan_slots {
	const struct region *region;
	uint32_t place, next; /* the next slot's number */
	uint64_t pages;       /* of the segment that it is in */
};

/* Borrows the region. */
struct live_scan_slots live_scan_slots(const struct region *region, uint32_t place);

/* Copies the next one, and its number. False: there are no more. */
bool live_scan_next(struct live_scan_slots *slots, uint32_t *number, struct slot_copy *copy);

#endif
