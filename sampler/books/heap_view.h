/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view: books and live scan, joined into the rows of a profile.
 *
 *   live    alloc_*: everything since the start; inuse_*: the blocks that are live
 *   peak    alloc_*: the same; inuse_*: the blocks that were live at the peak
 *   delta   alloc_*: everything since the last mark (heap_mark); inuse_*: the part of it that is live
 */
#ifndef SAMPLER_BOOKS_HEAP_VIEW_H
#define SAMPLER_BOOKS_HEAP_VIEW_H

#include "sampler/books/heap.h"
#include "sampler/intake/live_scan.h"

/* Estimates with the variance of their sampling error (of bytes and of objects). */
struct heap_estimate {
	uint64_t samples;
	double bytes, objects;
	double bytes_variance, objects_variance;
};

enum heap_view_kind {
	HEAP_VIEW_LIVE,
	HEAP_VIEW_PEAK,
	HEAP_VIEW_DELTA,
};

enum { HEAP_VIEW_NO_AGE = UINT32_MAX };

struct heap_view_row {
	struct heap_key key; /* stack UINT32_MAX: the lost stacks */
	/* class, see lifetime.h; HEAP_VIEW_NO_AGE without the label, and for freed blocks */
	uint32_t age;
	bool temporary; /* freed soon: only with the label, not in a delta; none of its blocks is in use */
	bool inherited; /* allocated by an ancestor of the process */
	struct tally alloc, inuse;
};

struct heap_view {
	struct heap_view_row *rows; /* owned */
	size_t count, capacity;
	/* inuse includes inherited; allocated has no variance */
	struct heap_estimate allocated, inuse, inherited;
	struct heap_estimate lost_alloc, lost_inuse; /* under [lost stack], included above */
	uint64_t lost_inherited; /* inherited samples in lost_inuse: they are not in lost_alloc */
};

/* Returns 0 or -ENOMEM (with nothing to free). */
int heap_view_make(struct heap_view *view, enum heap_view_kind kind, const struct heap *heap,
    const struct live_scan *live_scan);
void heap_view_fini(struct heap_view *view);

#endif
