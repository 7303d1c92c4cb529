/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of the shared region (proto/region.h): one for each live sampled block of this process. They come in
 * segments that a place takes as it needs them; the region says which place owns which segment; which slots
 * of a segment are taken is known only here.
 */
#ifndef PRELOAD_SLOT_H
#define PRELOAD_SLOT_H

#include "preload/live.h"
#include "preload/place.h"

#include <stddef.h>

/* Bytes that slot_open needs for so many segments that a process may own, a multiple of 64. */
size_t slot_bytes(uint32_t segments);

/* Gives the notes about segments their memory: zeroed, private, aligned to 64 bytes. */
void slot_open(uint32_t segments, void *memory);

/* Takes that memory away: no slot is taken any more. */
void slot_close(void);

/* In a forked child: its parent's segments are not its own. */
void slot_reset(void);

/* Takes another segment; returns without one if another thread is taking one. Called when a place is opened,
 * and not only at its first sample. */
void slot_grow(void);

/* A free slot, now the caller's, or REGION_NO_SLOT. */
uint32_t slot_take(void);

/* The block was freed; its description stays until the slot is taken again. */
void slot_give_back(uint32_t slot);

/* Describes a block in its entry's slot and makes it live. `sample` and origin_place: as in struct
 * region_slot; flags are added to the entry's. */
void slot_write(const struct live_entry *entry, const void *pointer, const struct region_sample *sample,
    uint16_t flags, uint32_t origin_place);

/* In a forked child that has not taken over this entry yet, the slot is the parent's, also if the child has
 * the place now that its parent had. */
static inline bool slot_is_mine(const struct live_entry *entry)
{
	return entry->sample.slot != REGION_NO_SLOT && entry->place == place_tag();
}

static inline struct region_slot *slot_at(uint32_t slot)
{
	return &place_segment(slot / REGION_SEGMENT_SLOTS)->slots[slot % REGION_SEGMENT_SLOTS];
}

/* The entry in which the slot keeps a block of the peak. */
static inline struct region_slot *slot_kept(uint32_t slot)
{
	return &place_segment(slot / REGION_SEGMENT_SLOTS)->kept[slot % REGION_SEGMENT_SLOTS];
}

/* Where the slot's block is. */
static inline _Atomic uint64_t *slot_address(uint32_t slot)
{
	return &place_segment(slot / REGION_SEGMENT_SLOTS)->addresses[slot % REGION_SEGMENT_SLOTS];
}

#endif
