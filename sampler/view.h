/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view: books and census put together, as the rows of a profile.
 *
 *   live    alloc_*: all there ever was; inuse_*: the blocks that are live
 *   peak    alloc_*: the same; inuse_*: the blocks that were live at the peak
 *   delta   alloc_*: what came since the last mark (heap_mark); inuse_*: of that, what is live
 */
#ifndef SAMPLER_VIEW_H
#define SAMPLER_VIEW_H

#include "sampler/census.h"
#include "sampler/heap.h"

/* Estimates with the variance of their sampling error (of bytes and of objects). */
struct view_estimate {
	uint64_t samples;
	double bytes, objects;
	double bytes_variance, objects_variance;
};

enum view_kind {
	VIEW_LIVE,
	VIEW_PEAK,
	VIEW_DELTA,
};

enum { VIEW_NO_AGE = UINT32_MAX };

struct view_row {
	uint32_t stack;                 /* UINT32_MAX: the lost stacks */
	uint32_t tid, size_class, rung; /* as in struct heap_site */
	uint32_t age;   /* class, see lifetime.h; VIEW_NO_AGE without the label, and for what is not in use */
	bool mapped;    /* mappings, not blocks of the heap */
	bool inherited; /* allocated by a process that this one was forked from */
	struct heap_sums alloc, inuse;
};

struct view {
	struct view_row *rows; /* owned */
	size_t count, capacity;
	/* inuse includes inherited; allocated has no variance */
	struct view_estimate allocated, inuse, inherited;
	struct view_estimate lost_alloc, lost_inuse; /* under [lost stack], included above */
};

/* Returns 0 or -ENOMEM (with nothing to free). */
int view_make(struct view *view, enum view_kind kind, const struct heap *heap, const struct census *census);
void view_fini(struct view *view);

#endif
