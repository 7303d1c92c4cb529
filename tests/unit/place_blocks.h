/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the hook's books: blocks whose slots tell whether they are whole. */
#ifndef TESTS_UNIT_PLACE_BLOCKS_H
#define TESTS_UNIT_PLACE_BLOCKS_H

#include "preload/block.h"
#include "tests/unit/place_scene.h"

/* Every field of a slot follows from the address. */
static inline uint64_t size_of(uint64_t address)
{
	return address % 4093 + 1;
}

static inline struct live_entry insert(uint64_t address)
{
	struct live_entry entry = {.sample = {.size_bytes = size_of(address),
	                               .period_bytes = size_of(address) * 3,
	                               .time_ns = address * 5,
	                               .tid = (uint32_t)address}};

	block_insert((const void *)(uintptr_t)address, &entry);
	return entry;
}

static inline bool drop(uint64_t address)
{
	struct live_entry entry;

	if (!live_take((const void *)(uintptr_t)address, &entry))
		return false;
	block_remove(&entry);
	return true;
}

static inline bool whole(const struct slot_copy *slot)
{
	const struct region_sample *sample = &slot->sample;

	return slot->address == sample->time_ns / 5 && sample->size_bytes == sample->period_bytes / 3 &&
	    sample->period_bytes % 3 == 0 && sample->size_bytes == size_of(sample->time_ns / 5) &&
	    (uint32_t)(sample->time_ns / 5) == sample->tid;
}

/* Live slots of a place; *torn counts those whose fields do not belong together. */
static inline uint32_t count_live(uint32_t number, uint32_t *torn, uint64_t *bytes)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < run_region.segments * (uint32_t)REGION_SEGMENT_SLOTS; i++) {
		struct slot_copy slot;

		if (region_segment_owner(&run_region, i / REGION_SEGMENT_SLOTS) != (int)number ||
		    !region_read_slot(&run_region, i, &slot))
			continue;
		live++;
		*torn += !whole(&slot);
		if (bytes)
			*bytes += weight_of(slot.sample.size_bytes, slot.sample.period_bytes).bytes_q8;
	}
	return live;
}

#endif
