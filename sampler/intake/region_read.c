/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of slots and of frees. The target may be writing them: a copy counts only if its word is the same
 * before and after. */
#include "sampler/intake/region.h"

#include <stdatomic.h>

static struct region_slot *slot_at(const struct region *region, uint32_t slot)
{
	return &region_segments(region)[slot / REGION_SEGMENT_SLOTS].slots[slot % REGION_SEGMENT_SLOTS];
}

static struct region_slot *kept_at(const struct region *region, uint32_t slot)
{
	return &region_segments(region)[slot / REGION_SEGMENT_SLOTS].kept[slot % REGION_SEGMENT_SLOTS];
}

static const _Atomic uint64_t *address_at(const struct region *region, uint32_t slot)
{
	return &region_segments(region)[slot / REGION_SEGMENT_SLOTS].addresses[slot % REGION_SEGMENT_SLOTS];
}

/* address: NULL: not known */
static bool copy_slot(const struct region_slot *from, const _Atomic uint64_t *address, struct slot_copy *copy)
{
	uint64_t word = atomic_load_explicit(&from->word, memory_order_acquire);
	enum slot_state state = slot_word_state(word);

	if (state != SLOT_LIVE && state != SLOT_FREED)
		return false;
	/* While the word still says that it is live, the owner may be storing the free's order number. */
	uint64_t freed_order = atomic_load_explicit(&from->freed_order, memory_order_relaxed);
	*copy = (struct slot_copy){
	    .seq = slot_word_seq(word),
	    .state = state,
	    .freed_order = state == SLOT_FREED ? freed_order : 0,
	    .address = address ? atomic_load_explicit(address, memory_order_relaxed) : 0,
	    .sample = from->sample,
	    .origin_place = from->origin_place,
	    .unmapped_pages = atomic_load_explicit(&from->unmapped_pages, memory_order_relaxed),
	    .flags = from->flags,
	};
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&from->word, memory_order_relaxed) == word;
}

bool region_read_slot(const struct region *region, uint32_t slot, struct slot_copy *copy)
{
	return region_read_any(region, slot, copy) && copy->state == SLOT_LIVE;
}

bool region_read_any(const struct region *region, uint32_t slot, struct slot_copy *copy)
{
	return slot < region->segments * (uint32_t)REGION_SEGMENT_SLOTS &&
	    copy_slot(slot_at(region, slot), address_at(region, slot), copy);
}

bool region_read_kept(const struct region *region, uint32_t slot, struct slot_copy *copy)
{
	return slot < region->segments * (uint32_t)REGION_SEGMENT_SLOTS &&
	    copy_slot(kept_at(region, slot), NULL, copy);
}

bool region_kept_is_there(const struct region *region, uint32_t slot)
{
	return region_is_written(region, kept_at(region, slot), sizeof(struct region_slot));
}

struct weight region_weight(const struct slot_copy *copy)
{
	uint64_t gone = (uint64_t)copy->unmapped_pages * REGION_PAGE_BYTES;
	uint64_t size = copy->sample.size_bytes;

	return weight_of_part(size, gone < size ? size - gone : 0, copy->sample.period_bytes);
}

bool region_read_free(const struct region *region, uint64_t number, struct free_copy *copy)
{
	const struct region_free *from =
	    (const struct region_free *)(void *)(region->base + region->offsets.frees) +
	    number % REGION_FREES;

	if (atomic_load_explicit(&from->word, memory_order_acquire) != number + 1)
		return false;
	*copy = (struct free_copy){
	    .sample = from->sample,
	    .freed_ns = from->freed_ns,
	    .freed_tid = from->freed_tid,
	    .place = from->place,
	};
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&from->word, memory_order_relaxed) == number + 1;
}
