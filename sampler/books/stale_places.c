/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/stale_places.h"

#include "sampler/books/process_identity.h"

enum {
	LOOK_NS = 500 * 1000000,
	LOOKS = 3, /* in succession that find no process */
};

/* Children take the lowest free place, so no place behind an unused one was ever used. A look at those
 * would only make the kernel allocate their pages. */
static bool is_unused(const struct region_place *place)
{
	return atomic_load(&place->state) == PLACE_FREE && atomic_load(&place->generation) == 0;
}

/* The first claimed place behind `after`, or else the first of all; 0 if there is none. */
static uint32_t next_claim(const struct program_run *run, uint32_t after)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < REGION_PLACES; i++) {
		const struct region_place *place = region_place(run->region, i);

		if (is_unused(place))
			break;
		if (atomic_load_explicit(&place->state, memory_order_acquire) != PLACE_CLAIMED ||
		    run->places.at[i])
			continue;
		if (i > after)
			return i;
		first = first ? first : i;
	}
	return first;
}

/* The pid that the child has written; 0 if it has not written one yet, or does not know its pid. */
static pid_t told_pid(const struct program_run *run, uint32_t number)
{
	const uint32_t told = *(const volatile uint32_t *)&region_place(run->region, number)->pid;

	return (pid_t)told > 0 ? (pid_t)told : 0;
}

static bool has_segment(const struct program_run *run, uint32_t number)
{
	for (uint32_t s = 0; s < run->region->segments; s++)
		if (region_segment_owner(run->region, s) == (int)number)
			return true;
	return false;
}

/* Whether the child was killed before it wrote its pid. A child that only stands still, and would go on in
 * a place that another process has by then, has the region mapped and is not known. */
static bool is_nobodys(struct program_run *run, uint32_t number)
{
	return !has_segment(run, number) && process_identity_all_known(run);
}

void stale_places_tend(struct program_run *run, uint64_t now_ns)
{
	struct run_claims *claims = &run->claims;

	if (now_ns - claims->looked_ns < LOOK_NS)
		return;
	claims->looked_ns = now_ns;
	const bool again = claims->looks != 0; /* the same once more */
	const uint32_t number = next_claim(run, claims->place - again);
	if (!number || number != claims->place)
		claims->looks = 0;
	claims->place = number;
	if (!number)
		return;
	const uint32_t generation = atomic_load(&region_place(run->region, number)->generation);
	const pid_t told = told_pid(run, number);
	if (told && process_identity_may_be_here(run, told)) {
		claims->looks = 0;
		return;
	}
	if (++claims->looks < LOOKS)
		return;
	claims->looks = 0;
	if (told ? !process_identity_may_be_anywhere(run, told) : is_nobodys(run, number))
		region_release_place_of(run->region, number, generation);
}

void stale_places_adopt(struct program_run *run)
{
	for (uint32_t i = 0; i < REGION_PLACES; i++)
		if (atomic_load(&region_place(run->region, i)->state) == PLACE_DEAD)
			region_release_place(run->region, i);
}
