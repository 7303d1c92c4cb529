/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region as this process has it mapped, and its place there: the part of a region that belongs to one
 * process (proto/region.h).
 *
 * Offsets and limits are private copies, made when the region was mapped: the shared header may be written by
 * anyone who has it mapped.
 */
#ifndef PRELOAD_PLACE_H
#define PRELOAD_PLACE_H

#include "proto/region.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PLACE_NONE = UINT16_MAX }; /* as an index or a tag: the process owns no slot */

/* The tag of a place is its index and, in the bits above, its generation modulo PLACE_TAG_GENERATIONS. A
 * child may get the place of its parent that has ended: the generation tells them apart. */
enum { PLACE_TAG_INDEX_BITS = 8, PLACE_TAG_GENERATIONS = 128 };
_Static_assert(REGION_PLACES <= 1 << PLACE_TAG_INDEX_BITS, "an index has room in a tag");
_Static_assert(PLACE_TAG_GENERATIONS << PLACE_TAG_INDEX_BITS <= PLACE_NONE, "and no tag is PLACE_NONE");

struct place_setup {
	unsigned char *base; /* of the mapped region */
	struct region_offsets offsets;
	uint32_t segments, start_segments, large_buffers; /* as in the header */
	uint64_t key;
	bool no_peak, record_mmap; /* as in the header */
};

struct place_view {
	struct place_setup region;
	struct region_header *header;
	struct region_place *self; /* NULL: no place was free */
	uint32_t index;
	uint32_t generation;  /* of the place, when it was taken */
	_Atomic uint16_t tag; /* this process owns the slots of entries with this tag */
	/* The mapping of segments that is used: that of the start, or that which place_grow() has made. */
	struct region_segment *_Atomic segments;
	bool cut_off; /* place_drop_buffers() */
	bool tapped;  /* the uprobe or breakpoint at the trigger fires in this process */
};
extern struct place_view place_view __attribute__((visibility("hidden")));

/* The region is mapped; the calling process gets place 0. */
void place_open(const struct place_setup *setup);

/* In a forked child: claims a free place instead of the parent's. False: none is free. The caller fills the
 * place in, beginning with place_begin(), and ends with place_ready(). */
bool place_take(void);

/* From now on slots that this process takes are its own. */
void place_begin(void);

/* The place is filled in. False: the sampler thought that we were dead and gave the place away
 * (sampler/books/stale_places.h), which is counted. */
bool place_ready(void);

/* In a forked child: the slots of entries with the parent's tag are not the child's own. */
void place_disown(uint16_t tag);

/* In a forked child that has changed its user id: cuts off its view of the stacks of others. The child copies
 * its stacks into dropped_buffers from now on. A stack that another thread is writing is lost. Makes one
 * call of mmap. If the limit of locked memory is in its way, calls munlock, and mremap twice, unless the
 * program is known to have a seccomp filter. False: the kernel refused it, which is counted; the process must
 * take no more samples. */
bool place_drop_buffers(void);

/* Maps all segments of the file at another address. Call it when the mapped segments are used up: the period
 * decides how many are mapped at the start, and a program run may have more live samples than they hold.
 * Calls mremap, once for each region. Calls munlock before that, if the program locked its memory and was
 * attached to later. These calls and those of last_level.h are the only system calls that a sample can cause.
 * Makes no system call if the program is known to have a seccomp filter. False: no more segments were mapped.
 * Keeps errno. */
bool place_grow(void);

/* How many bytes of the region are mapped: from the start, and by now. */
uint64_t place_start_bytes(void);
uint64_t place_bytes(void);

/* Covers the memory that place_grow() has mapped with zeroes. Call it before the rest of the region is
 * covered. From then on place_grow() maps nothing, until the next place_open(). */
void place_cover_grown(void);

/* Unmaps the memory that place_grow() has mapped. Call it when the rest of the region is unmapped. */
void place_unmap_grown(void);

/* The process takes no more samples and is about to unmap the region: nothing of it is used from now on. */
void place_leave(void);

/* The shared header; NULL: the region was left. Only valid once place_open has run. */
static inline struct region_header *place_header(void)
{
	return place_view.header;
}

/* Our place; only valid while claim_ready() says so. */
static inline struct region_place *place_self(void)
{
	return place_view.self;
}

static inline uint32_t place_index(void)
{
	return place_view.index;
}

static inline uint16_t place_tag(void)
{
	return atomic_load_explicit(&place_view.tag, memory_order_acquire);
}

static inline uint32_t place_tag_index(uint16_t tag)
{
	return tag & ((1u << PLACE_TAG_INDEX_BITS) - 1);
}

/* The value of the trigger's first register: the region's key and this process' place. */
static inline uint64_t place_key(void)
{
	return place_view.region.key | place_view.index;
}

/* A part of the region, by its offset. */
static inline void *place_part(uint64_t offset)
{
	return place_view.region.base + offset;
}

/* How many segments are mapped at `first`, which was read from place_view.segments. */
static inline uint32_t place_segments_at(const struct region_segment *first)
{
	const struct place_setup *region = &place_view.region;

	return first == place_part(region->offsets.segments) ? region->start_segments : region->segments;
}

/* The segment of that number if the segment is mapped, else the first segment. A number may be too large: a
 * thread may hold a slot of an earlier region, of which more segments were mapped. */
static inline struct region_segment *place_segment(uint32_t number)
{
	struct region_segment *first = atomic_load_explicit(&place_view.segments, memory_order_acquire);

	return first + (number < place_segments_at(first) ? number : 0);
}

/* Whether a uprobe or breakpoint is set on the trigger. */
static inline bool place_tapped(void)
{
	return place_view.tapped &&
	    atomic_load_explicit(&place_view.header->mode, memory_order_relaxed) == REGION_MODE_TRIGGER;
}

#endif
