/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of what the sampler reads from shared memory, after cmocka's headers: a genuine region, and its
 * parts written as the library writes them, whole or only half.
 */
#ifndef TESTS_UNIT_REGION_FIXTURE_H
#define TESTS_UNIT_REGION_FIXTURE_H

#include "proto/buffer.h"
#include "sampler/intake/region.h"

#include <string.h>
#include <sys/mman.h>

static inline void fixture_open(struct region *region, uint64_t live_max)
{
	const struct region_options options = {.period_bytes = 1,
	    .dump_bytes = 8192,
	    .clock_id = 1,
	    .live_max = live_max,
	    .mode = REGION_MODE_COPY};

	assert_int_equal(region_open(region, 1, 0x10000, &options), 0);
}

/* Over their place in another mapping of the region's own file, as the library does it. */
static inline void fixture_map_buffers(const struct region *region, unsigned char *base)
{
	unsigned char *place = base + region->offsets.buffers;

	assert_ptr_equal(place,
	    mmap(place, region_buffers_bytes(&region->offsets), PROT_READ | PROT_WRITE,
	        MAP_SHARED | MAP_NORESERVE | MAP_FIXED, region->buffers_fd, 0));
}

/* ---- slots */

static inline void fixture_set_owner(const struct region *region, uint32_t segment, uint16_t word)
{
	((_Atomic uint16_t *)(void *)(region->base + region->offsets.owners))[segment] = word;
}

static inline void fixture_own(const struct region *region, uint32_t segment, uint32_t place)
{
	fixture_set_owner(region, segment, (uint16_t)(place + 1));
}

static inline struct region_slot *fixture_slot(const struct region *region, uint32_t number)
{
	return &region_segments(region)[number / REGION_SEGMENT_SLOTS].slots[number % REGION_SEGMENT_SLOTS];
}

static inline struct region_slot *fixture_kept(const struct region *region, uint32_t number)
{
	return &region_segments(region)[number / REGION_SEGMENT_SLOTS].kept[number % REGION_SEGMENT_SLOTS];
}

static inline _Atomic uint64_t *fixture_address(const struct region *region, uint32_t number)
{
	return &region_segments(region)[number / REGION_SEGMENT_SLOTS]
	            .addresses[number % REGION_SEGMENT_SLOTS];
}

struct fixture_block {
	uint64_t seq, size_bytes, time_ns;
	uint32_t tid;
	uint16_t flags;
};

/* A block comes to life in a slot. */
static inline void fixture_live(
    const struct region *region, uint32_t number, const struct fixture_block *block)
{
	struct region_slot *slot = fixture_slot(region, number);

	atomic_store(&slot->word, block->seq << 8 | SLOT_WRITING);
	slot->sample.size_bytes = block->size_bytes;
	slot->sample.period_bytes = 1;
	slot->sample.time_ns = block->time_ns;
	slot->sample.tid = block->tid;
	slot->flags = block->flags;
	atomic_store(&slot->word, block->seq << 8 | SLOT_LIVE);
}

/* It is freed; order: of the free, drawn from the same counter as seq. */
static inline void fixture_freed(const struct region *region, uint32_t number, uint64_t order)
{
	struct region_slot *slot = fixture_slot(region, number);

	slot->freed_order = order;
	atomic_store(&slot->word, (atomic_load(&slot->word) & ~SLOT_STATE_MASK) | SLOT_FREED);
}

/* What the hook does before it uses a slot again whose block was part of the peak. */
static inline void fixture_keep(const struct region *region, uint32_t number)
{
	memcpy((void *)fixture_kept(region, number), (const void *)fixture_slot(region, number),
	    sizeof(struct region_slot));
}

static inline void fixture_peak(
    const struct region *region, uint32_t place, uint64_t last_seq, uint64_t samples)
{
	atomic_store(&region_place(region, place)->peak_samples, samples);
	atomic_store(&region_place(region, place)->peak_order, last_seq + 1);
}

/* What a place has counted so far. */
static inline void fixture_count(
    const struct region *region, uint32_t place, uint64_t samples, uint64_t bytes)
{
	struct region_tally *allocated = &region_place(region, place)->allocated;

	atomic_store(&allocated->samples, samples);
	atomic_store(&allocated->objects_q16, samples << WEIGHT_OBJECTS_SHIFT);
	atomic_store(&allocated->bytes_q8, bytes << WEIGHT_BYTES_SHIFT);
}

/* ---- the ring of frees */

static inline struct region_free *fixture_free_entry(const struct region *region, uint64_t number)
{
	return (struct region_free *)(void *)(region->base + region->offsets.frees) + number % REGION_FREES;
}

/* Entry `number` of the history: a block of `seq` in `slot` that lived for lived_ns. */
static inline void fixture_free(const struct region *region, uint64_t number, uint32_t slot, uint64_t seq,
    uint64_t lived_ns, uint32_t freed_tid)
{
	struct region_free *entry = fixture_free_entry(region, number);

	entry->sample.seq = seq;
	entry->sample.slot = slot;
	entry->sample.size_bytes = 64;
	entry->sample.period_bytes = 1;
	entry->sample.time_ns = 1000;
	entry->freed_ns = 1000 + lived_ns;
	entry->sample.tid = 7;
	entry->freed_tid = freed_tid;
	entry->place = 0;
	atomic_store(&entry->word, number + 1);
}

/* ---- stack buffers */

/* Number n of a class, not marked as taken. */
static inline struct region_buffer *fixture_buffer(
    const struct region *region, uint32_t class, uint32_t number)
{
	unsigned char *at = region->base + region->offsets.buffers + BUFFER_BITMAPS_BYTES;

	for (uint32_t c = 0; c < class; c++)
		at += (size_t)buffer_class[c].count * buffer_class[c].bytes;
	return (struct region_buffer *)(void *)(at + (size_t)number * buffer_class[class].bytes);
}

/* Its bit in the bitmap, as the hook takes it. */
static inline void fixture_take_buffer(const struct region *region, uint32_t class, uint32_t number)
{
	_Atomic uint64_t *bitmap = (_Atomic uint64_t *)(void *)(region->base + region->offsets.buffers);

	for (uint32_t c = 0; c < class; c++)
		number += 64 * buffer_words(buffer_class[c].count);
	atomic_fetch_or(&bitmap[number / 64], UINT64_C(1) << number % 64);
}

#endif
