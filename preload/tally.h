/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums that a process keeps in its place: allocated, live, the peak, and what was lost. They stay right
 * when stacks are lost on the way to the sampler.
 */
#ifndef PRELOAD_TALLY_H
#define PRELOAD_TALLY_H

#include "preload/live.h"
#include "preload/place.h"
#include "preload/weigh.h"

/* The weight of a live entry; for a mapping, without the pages that were unmapped. */
static inline struct weighed tally_weight(const struct live_entry *entry)
{
	uint64_t unmapped = (uint64_t)entry->unmapped_pages * REGION_PAGE_BYTES;
	const struct region_sample *sample = &entry->sample;

	return weigh(sample->size_bytes, sample->size_bytes - unmapped, sample->period_bytes);
}

/* One more sample: allocated, or lost for a cause. */
void tally_allocated(struct weighed weight);
void tally_lost(enum region_loss cause, const struct region_sample *sample);

/* One more live block, which may make a new peak; seq: its order number. */
void tally_live_add(struct weighed weight, uint64_t now_ns, uint64_t seq);

/* One live block less. */
void tally_live_subtract(struct weighed weight);

/* A live mapping weighs less than before. */
void tally_live_shrink(struct weighed before, struct weighed after);

#endif
