/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/place.h"

#include "preload/lock_all.h"
#include "preload/memory.h"
#include "preload/seccomp_filter.h"
#include "preload/session.h"

#include <errno.h>
#include <stddef.h>

struct place_view place_view;

static struct region_place *place_at(uint32_t index)
{
	return (struct region_place *)place_part(place_view.region.offsets.places) + index;
}

/* After mlockall(MCL_FUTURE) the kernel refuses zeroes beyond the limit of locked memory, by EAGAIN. Then the
 * hole in the region's own file lies there. A filter may not know the calls that this takes. */
bool place_drop_buffers(void)
{
	const struct region_offsets *offsets = &place_view.region.offsets;
	unsigned char *buffers = place_part(offsets->buffers);
	const uint64_t bytes = region_buffers_bytes(offsets);

	place_view.cut_off = true;
	if (memory_cover(buffers, bytes) ||
	    (errno == EAGAIN && !seccomp_filter_is_noted() &&
	        memory_continue(buffers, REGION_PAGE_BYTES_MOST, bytes)))
		return true;
	atomic_fetch_add(&place_view.header->not_cut_off, 1);
	return false;
}

enum growth { GROWTH_POSSIBLE, GROWTH_TRIED, GROWTH_OVER };

/* What place_grow has mapped, of whichever region: attached again, a process uses the same addresses. */
static struct {
	unsigned char *start;
	uint64_t bytes;
	_Atomic uint32_t state; /* enum growth, for this region */
} grown;

uint64_t place_start_bytes(void)
{
	const struct place_setup *region = &place_view.region;

	return region->offsets.segments + region->start_segments * sizeof(struct region_segment);
}

uint64_t place_bytes(void)
{
	return place_start_bytes() + grown.bytes;
}

/* The file goes on where the mapping of the start ends. If the region is being detached from, zeroes may lie
 * there already, which end where the mapping of the start ends: what was mapped must not be used. */
static struct region_segment *map_all(void)
{
	const struct place_setup *region = &place_view.region;
	const uint64_t bytes = region->segments * sizeof(struct region_segment);

	if (seccomp_filter_is_noted() || !session_affordable_later(place_start_bytes() + bytes, 0))
		return NULL;
	unsigned char *start = memory_map_again(
	    place_part(region->offsets.segments), bytes, grown.bytes == bytes ? grown.start : NULL);
	if (!start)
		return NULL;
	grown.start = start;
	grown.bytes = bytes;
	lock_all_leave_out(LOCK_ALL_GROWN_REGION, start, bytes);
	if (atomic_load(&grown.state) == GROWTH_OVER)
		return NULL;
	return (struct region_segment *)(void *)start;
}

bool place_grow(void)
{
	const int saved = errno;
	const uint32_t all = place_view.region.segments;
	uint32_t possible = GROWTH_POSSIBLE;

	if (place_segments_at(atomic_load(&place_view.segments)) >= all ||
	    !atomic_compare_exchange_strong(&grown.state, &possible, GROWTH_TRIED))
		return false;
	struct region_segment *segments = map_all();
	if (segments)
		atomic_store(&place_view.segments, segments);
	errno = saved;
	return segments != NULL;
}

void place_cover_grown(void)
{
	atomic_store(&grown.state, GROWTH_OVER);
	if (grown.bytes)
		(void)memory_cover(grown.start, grown.bytes);
}

void place_unmap_grown(void)
{
	if (grown.bytes)
		memory_unmap(grown.start, grown.bytes);
	grown.bytes = 0;
	lock_all_leave_out(LOCK_ALL_GROWN_REGION, NULL, 0);
}

/* Attached again, after the last region has grown: a thread that has been in a hook all the while may have a
 * slot of the segments that were mapped then. */
static void open_segments(void)
{
	place_cover_grown();
	atomic_store(&place_view.segments, place_part(place_view.region.offsets.segments));
	atomic_store(&grown.state, GROWTH_POSSIBLE);
	if (grown.bytes)
		(void)place_grow();
}

void place_open(const struct place_setup *setup)
{
	place_view.region = *setup;
	place_view.header = place_part(0);
	place_view.self = place_at(0);
	place_view.index = 0;
	atomic_store(&place_view.tag, PLACE_NONE);
	place_view.cut_off = false;
	place_view.tapped = true;
	open_segments();
}

void place_begin(void)
{
	if (place_view.index == 0) /* which nobody had to take; of any other it was read before that */
		place_view.generation = atomic_load(&place_view.self->generation);
	const uint32_t counted = place_view.generation % PLACE_TAG_GENERATIONS;
	atomic_store(&place_view.tag, (uint16_t)(place_view.index | counted << PLACE_TAG_INDEX_BITS));
}

/* The sampler gives away the place of a claim that never ends. We may have been stopped meanwhile. */
bool place_ready(void)
{
	uint32_t claimed = PLACE_CLAIMED;

	if (atomic_load(&place_view.self->generation) == place_view.generation &&
	    atomic_compare_exchange_strong(&place_view.self->state, &claimed, PLACE_READY))
		return true;
	atomic_store(&place_view.tag, PLACE_NONE);
	atomic_fetch_add(&place_view.header->places_exhausted, 1);
	return false;
}

void place_leave(void)
{
	atomic_store(&place_view.tag, PLACE_NONE);
	place_view.self = NULL;
	place_view.header = NULL;
}

void place_disown(uint16_t tag)
{
	atomic_compare_exchange_strong(&place_view.tag, &tag, PLACE_NONE);
}

bool place_take(void)
{
	atomic_store(&place_view.tag, PLACE_NONE);
	place_view.index = PLACE_NONE;
	place_view.self = NULL;
	for (uint32_t n = 1; n < REGION_PLACES; n++) {
		uint32_t free_state = PLACE_FREE;

		if (atomic_load_explicit(&place_at(n)->state, memory_order_acquire) != PLACE_FREE)
			continue;
		/* Before we have it: afterwards it may have been given away, if we stand still. */
		const uint32_t generation = atomic_load(&place_at(n)->generation);
		if (!atomic_compare_exchange_strong(&place_at(n)->state, &free_state, PLACE_CLAIMED))
			continue;
		place_view.generation = generation;
		place_view.self = place_at(n);
		place_view.index = n;
		return true;
	}
	atomic_fetch_add(&place_view.header->places_exhausted, 1);
	return false;
}
