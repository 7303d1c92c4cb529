/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/place_slots.h"

struct place_slots place_slots_begin(const struct region *region, uint32_t place)
{
	return (struct place_slots){.region = region, .place = place};
}

/* False: it is not the place's. */
static bool open_segment(struct place_slots *slots)
{
	const uint32_t segment = slots->next / REGION_SEGMENT_SLOTS;

	if (region_segment_owner(slots->region, segment) != (int)slots->place)
		return false;
	slots->pages = region_segment_pages(slots->region, segment).slots;
	return true;
}

bool place_slots_next(struct place_slots *slots, uint32_t *number, struct slot_copy *copy)
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
