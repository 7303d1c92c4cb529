/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/place.h"

#include "preload/memory.h"

#include <stddef.h>

struct place_view place_view;

static struct region_place *place_at(uint32_t index)
{
	return (struct region_place *)place_part(place_view.region.offsets.places) + index;
}

void place_open(const struct place_setup *setup)
{
	place_view.region = *setup;
	place_view.header = place_part(0);
	place_view.self = place_at(0);
	place_view.index = 0;
	atomic_store(&place_view.tag, PLACE_NONE);
	place_view.buffers = setup->offsets.buffers;
	place_view.tapped = true;
}

bool place_drop_buffers(void)
{
	const struct region_offsets *offsets = &place_view.region.offsets;

	place_view.buffers = offsets->dropped_buffers;
	if (memory_cover(place_part(offsets->buffers), offsets->frees - offsets->buffers))
		return true;
	atomic_fetch_add(&place_view.header->not_cut_off, 1);
	return false;
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
