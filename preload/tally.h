/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums that the process keeps of itself in its place: allocated, live, the peak, and what was lost. They
 * are right whatever stacks are lost on the way to the sampler.
 */
#ifndef PRELOAD_TALLY_H
#define PRELOAD_TALLY_H

#include "preload/live.h"
#include "preload/place.h"
#include "proto/weight.h"

/* What a live entry weighs: of a mapping, less the part that is gone. */
static inline struct weight tally_weight(const struct live_entry *entry)
{
	uint64_t unmapped = (uint64_t)entry->unmapped_pages * REGION_PAGE_BYTES;
	const struct region_sample *sample = &entry->sample;
	return weight_of_part(sample->size_bytes, sample->size_bytes - unmapped, sample->period_bytes);
}

/* One more sample: allocated, or lost for a cause. */
void tally_allocated(struct weight weight);
void tally_lost(enum region_loss cause, const struct region_sample *sample);

/* One more live block, which may make a new peak; seq: its order number. */
void tally_live_add(struct weight weight, uint64_t now_ns, uint64_t seq);

/* One less. */
void tally_live_subtract(struct weight weight);

/* A live mapping weighs less than before. */
void tally_live_shrink(struct weight before, struct weight after);

#endif
