/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/live_scan.h"

#include "pprof/text/clock.h"

#include "pprof/table/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PASSES = 3 };

static int add_block(struct live_scan *c, uint32_t number, const struct slot_copy *slot, bool live, bool peak)
{
	if (array_reserve(&c->blocks, &c->capacity, c->count + 1, sizeof(*c->blocks)) != 0)
		return -ENOMEM;
	c->blocks[c->count++] = (struct live_scan_block){*slot, number, live, peak};
	return 0;
}

/* `peak` is the order number of the peak plus 1. */
static bool was_at_peak(const struct slot_copy *slot, uint64_t peak)
{
	return slot->seq < peak && (slot->state == SLOT_LIVE || slot->freed_order >= peak);
}

static int look_at_slot(
    struct live_scan *c, const struct region *region, uint32_t number, bool is_there, bool kept_is_there)
{
	struct slot_copy slot, kept;
	int error = 0;
	bool peak_found = false,
	     peak_kept = kept_is_there && region_read_kept(region, number, &kept) &&
	    was_at_peak(&kept, c->peak_order);

	if (is_there && region_read_any(region, number, &slot)) {
		bool live = slot.state == SLOT_LIVE;

		/* For a mapping that has shrunk since the peak, the kept entry is used. */
		peak_found = was_at_peak(&slot, c->peak_order) && !(peak_kept && kept.seq == slot.seq);
		if (live || peak_found)
			error = add_block(c, number, &slot, live, peak_found);
	}
	if (!error && !peak_found && peak_kept)
		error = add_block(c, number, &kept, false, true);
	return error;
}

static int pass(struct live_scan *c, const struct region *region, uint32_t place)
{
	c->count = 0;
	for (uint32_t s = 0; s < region->segments; s++) {
		if (region_segment_owner(region, s) != (int)place)
			continue;
		const struct region_segment_pages pages = region_segment_pages(region, s);
		for (uint32_t i = 0; i < REGION_SEGMENT_SLOTS; i++) {
			const uint32_t page = i / REGION_SLOTS_PER_PAGE;
			int error = look_at_slot(c, region, s * REGION_SEGMENT_SLOTS + i,
			    pages.slots >> page & 1, pages.kept >> page & 1);

			if (error)
				return error;
		}
	}
	return 0;
}

/* The block that made the peak is one of those that were live then, and its time is the peak's. */
static void describe_peak(struct live_scan *c, const struct region_place *place, uint64_t samples)
{
	c->peak_ns = atomic_load(&place->peak_ns);
	for (size_t i = 0; i < c->count; i++) {
		const struct live_scan_block *block = &c->blocks[i];

		samples -= block->peak;
		if (block->peak && block->slot.seq + 1 == c->peak_order &&
		    !(block->slot.flags & SLOT_INHERITED))
			c->peak_ns = block->slot.sample.time_ns;
	}
	c->peak_missing = (int64_t)samples;
}

int live_scan_take(struct live_scan *c, const struct region *region, uint32_t number)
{
	const struct region_place *place = region_place(region, number);

	memset(c, 0, sizeof(*c));
	if (!place)
		return -EINVAL;
	c->counted = region_read_tally(&place->allocated);
	for (int n = 0; n < PASSES; n++) {
		c->peak_order = atomic_load_explicit(&place->peak_order, memory_order_acquire);
		uint64_t samples = atomic_load(&place->peak_samples);
		int error = pass(c, region, number);
		if (error)
			return error;
		describe_peak(c, place, samples);
		if (atomic_load_explicit(&place->peak_order, memory_order_acquire) == c->peak_order)
			break;
	}
	c->now_ns = clock_now_ns();
	if (c->peak_ns > c->now_ns) /* the target's word, as all of this is */
		c->peak_ns = c->now_ns;
	return 0;
}

void live_scan_fini(struct live_scan *c)
{
	free(c->blocks);
	c->blocks = NULL;
	c->count = c->capacity = 0;
}

/* ---- one slot after the other */

struct live_scan_slots live_scan_slots(const struct region *region, uint32_t place)
{
	return (struct live_scan_slots){.region = region, .place = place};
}

/* False: it is not the place's. */
static bool open_segment(struct live_scan_slots *slots)
{
	const uint32_t segment = slots->next / REGION_SEGMENT_SLOTS;

	if (region_segment_owner(slots->region, segment) != (int)slots->place)
		return false;
	slots->pages = region_segment_pages(slots->region, segment).slots;
	return true;
}

bool live_scan_next(struct live_scan_slots *slots, uint32_t *number, struct slot_copy *copy)
{
	while (slots->next < slots->region->segments * REGION_SEGMENT_SLOTS) {
		const uint32_t i = slots->next % REGION_SEGMENT_SLOTS;

		if (i == 0 && !open_segment(slots)) {
			slots->next += REGION_SEGMENT_SLOTS;
		} else if (!(slots->pages >> i / REGION_SLOTS_PER_PAGE & 1)) {
			slots->next += REGION_SLOTS_PER_PAGE; /* i is the first slot of its page */
		} else {
			*number = slots->next++;
			if (region_read_slot(slots->region, *number, copy))
				return true;
		}
	}
	return false;
}
