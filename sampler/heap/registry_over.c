/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are over: none of their processes is left, and no other process has the region mapped. */
#include "sampler/heap/registry_steps.h"

#include "pprof/table/array.h"
#include "sampler/heap/registry.h"
#include "sampler/linux/clock.h"

enum {
	/* time between the ticket and a complete header; then the image is abandoned */
	CLAIM_LIMIT_NS = 2000 * 1000000,
	/* for so long one that declined is kept: who has executed it may be found after it */
	DECLINED_NS = 100 * 1000000,
};

/* A look at who has anonymous memory mapped takes a reading of the maps of one process for each image, and
 * now and then of all processes that there are. After it we wait 20 times as long. */
static const struct throttle_rate look_rate = {.burst = 1, .units = 1, .step_ns = 20};

/* What the next look will find: we may be late by more than CLAIM_LIMIT_NS. (Which images are ready may be
 * looked at in the middle of a look, too.) */
static bool has_news(const struct image *image)
{
	return !image->ready && !image->declined &&
	    (atomic_load_explicit(&region_header(image->region)->state, memory_order_acquire) ==
	            REGION_READY ||
	        region_declined_text(image->region));
}

/* Over, unless a process has the region mapped: a forked child without samples so far may still claim a place
 * in it. */
static bool is_left(const struct image *image, uint64_t now)
{
	if (!image->ready &&
	    now - image->claimed_ns < (uint64_t)(image->declined ? DECLINED_NS : CLAIM_LIMIT_NS))
		return false;
	if (has_news(image) || (image->ready && !image->settled))
		return false;
	/* place 0 is kept */
	uint32_t ended = image->process[0] && image->process[0]->target.closed;
	return image->live_processes <= ended && !image->unreleased;
}

bool registry_is_over(const struct image *image, uint64_t now)
{
	if (!is_left(image, now))
		return false;
	if (!image->ready && image->region->holder)
		return true; /* another user's process took the region and did not use it */
	return image->region->anonymous ? image->unmapped : region_abandoned(image->region);
}

/* Of anonymous memory the kernel does not tell whether anybody has it. Whoever had it at the last look is
 * asked first: mostly it still has, as a process that sleeps does for days. For all others together /proc is
 * searched once. */
void registry_look_who_maps(struct registry *registry, uint64_t now)
{
	size_t count = 0;

	const uint64_t begin_ns = clock_now_ns();
	if (!throttle_allows(&registry->look_work, &look_rate, begin_ns))
		return;
	for (struct image *image = registry->intake->images; image; image = image->next) {
		if (!image->region->anonymous || !is_left(image, now) ||
		    region_mapped_still(image->region, image->mapped_by))
			continue;
		if (array_reserve(&registry->searches, &registry->searches_capacity, count + 1,
		        sizeof(*registry->searches)) != 0)
			break; /* the others another time */
		registry->searches[count++] =
		    (struct region_search){.region = image->region, .context = image};
	}
	region_search_all(registry->searches, count);
	for (size_t i = 0; i < count; i++) {
		struct image *image = registry->searches[i].context;

		image->mapped_by = registry->searches[i].pid;
		image->unmapped = registry->searches[i].answer == REGION_MAPPED_NO;
	}
	throttle_spend(&registry->look_work, clock_now_ns() - begin_ns);
}
