/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/abandoned.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"

#include <stdlib.h>

enum {
	/* time between the ticket and a complete header; then the image is abandoned */
	CLAIM_LIMIT_NS = 2000 * 1000000,
	/* An image that declined is kept for so long: the process that executed it may be found later. */
	DECLINED_NS = 100 * 1000000,
};

/* A look at who has anonymous memory mapped reads the maps of one process for each image, and now and then
 * those of all processes. After it we wait 20 times as long. */
static const struct throttle_rate look_rate = {.burst = 1, .units = 1, .step_ns = 20};

/* The image has written something that the next look will find: we may be late by more than
 * CLAIM_LIMIT_NS. (In the middle of a look new images may be found ready, too.) */
static bool has_news(const struct image *image)
{
	return !image_is_ready(image) && !image->life.declined &&
	    (atomic_load_explicit(&region_header(image->region)->state, memory_order_acquire) ==
	            REGION_READY ||
	        region_declined_text(image->region));
}

/* Abandoned, unless a process has the region mapped: a forked child without samples so far may still claim a
 * place in it. */
static bool is_left(const struct image *image, uint64_t now)
{
	const struct process *first = image->places.at[0];

	if (!image_is_ready(image) &&
	    now - image->claimed_ns < (uint64_t)(image->life.declined ? DECLINED_NS : CLAIM_LIMIT_NS))
		return false;
	if (has_news(image) || image->life.state == IMAGE_READY)
		return false;
	/* The process at place 0 is kept after its release; the others are freed then. */
	return image->places.live <= (first && first->life.released);
}

bool abandoned_is(const struct image *image, uint64_t now)
{
	if (!is_left(image, now))
		return false;
	if (!image_is_ready(image) && image->region->holder)
		return true; /* another user's process took the region and did not use it */
	return image->region->anonymous ? image->mapped.by_nobody : region_abandoned(image->region);
}

void abandoned_begin(struct image *image, pid_t mapped_by)
{
	image->mapped.by = mapped_by;
}

/* Of anonymous memory the kernel does not tell whether a process has it mapped. The process that had it at
 * the last look is asked first: mostly it still has, as a process that sleeps does for days. For all other
 * images together /proc is searched once. */
void abandoned_look(struct abandoned *abandoned, const struct books *books, uint64_t now)
{
	struct region_search *searches = NULL;
	size_t count = 0, capacity = 0;

	const uint64_t begin_ns = clock_now_ns();
	if (!throttle_allows(&abandoned->work, &look_rate, begin_ns))
		return;
	books_each_image (image, books) {
		if (!image->region->anonymous || !is_left(image, now) ||
		    region_mapped_still(image->region, image->mapped.by))
			continue;
		if (array_reserve(&searches, &capacity, count + 1, sizeof(*searches)) != 0)
			break; /* the others another time */
		searches[count++] = (struct region_search){.region = image->region, .context = image};
	}
	region_search_all(searches, count);
	for (size_t i = 0; i < count; i++) {
		struct image *image = searches[i].context;

		image->mapped.by = searches[i].pid;
		image->mapped.by_nobody = searches[i].answer == REGION_MAPPED_NO;
	}
	free(searches);
	throttle_spend(&abandoned->work, clock_now_ns() - begin_ns);
}
