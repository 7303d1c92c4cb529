/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live blocks of a place, one slot after the other. Of an offered region no page is looked at that nobody
 * has written: its process says which segments are whose, and the memory would be charged to us.
 */
#ifndef SAMPLER_INTAKE_PLACE_SLOTS_H
#define SAMPLER_INTAKE_PLACE_SLOTS_H

#include "sampler/intake/region.h"

struct place_slots {
	const struct region *region;
	uint32_t place, next; /* the next slot's number */
	uint64_t pages;       /* of the segment that it is in */
};

/* Borrows the region. */
struct place_slots place_slots_begin(const struct region *region, uint32_t place);

/* Copies the next one, and its number. False: there are no more. */
bool place_slots_next(struct place_slots *slots, uint32_t *number, struct slot_copy *copy);

#endif
