/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/arrivals.h"

#include "sampler/heap/abandoned.h"
#include "sampler/heap/adoption.h"
#include "sampler/heap/drain.h"
#include "sampler/heap/image.h"
#include "sampler/heap/offerer.h"
#include "sampler/heap/process_life.h"
#include "sampler/heap/stale_places.h"
#include "sampler/heap/tend.h"
#include "sampler/heap/unfollowed.h"
#include "sampler/heap/walked.h"

#include <errno.h>
#include <stdlib.h>

/* ---- of an earlier sampler */

static void adopt(struct registry *registry, struct image *image)
{
	struct image_origin *origin = &image->origin;

	registry_begin_adoption(image);
	origin->attached_after_ns = region_header(image->region)->attached_after_ns;
	origin->attached_rss_bytes = region_header(image->region)->attached_rss_bytes;
	stale_places_adopt(image);
	for (uint32_t i = 0; i < REGION_PLACES; i++) {
		struct process *process = image_process(image, i, registry->setup.modules);

		if (!process)
			continue;
		if (i == 0 && origin->attached_after_ns)
			origin->attached_pid = process->target.pid;
		adoption_begin(process);
		process_life_watch(registry, process);
	}
	walked_begin(image); /* what it counts is later than what has been read of each place */
	if (origin->attached_pid)
		unfollowed_begin(image);
	backend_fallback_adopt(&registry->fallback, image);
}

int arrivals_adopt(struct registry *registry, struct region *region)
{
	struct image *image = registry_add_image(registry, region);

	if (!image)
		return -ENOMEM;
	adopt(registry, image);
	return 0;
}

/* ---- offered */

int arrivals_offer(struct registry *registry, const struct arrivals_offer *offer)
{
	struct image *image = registry_add_image(registry, offer->region);

	if (!image) {
		free(offer->plan);
		return -ENOMEM;
	}
	image->plan = offer->plan;
	image->origin.offered = true;
	image->origin.offered_after_ns = offer->used ? 0 : offer->after_ns;
	image_begin_period(image, offer->period_bytes);
	abandoned_begin(image, offer->pid);
	offerer_find(image, offer->pid, registry->setup.modules);
	if (offer->used)
		adopt(registry, image);
	return 0;
}

/* ---- attached to */

int arrivals_attach(
    struct registry *registry, struct region *region, const struct arrivals_attached *attached)
{
	struct image *image = registry_add_image(registry, region);

	if (!image) {
		free(attached->plan);
		return -ENOMEM;
	}
	image->plan = attached->plan;
	image->origin = (struct image_origin){.attached_pid = attached->pid,
	    .attached_after_ns = attached->after_ns,
	    .attached_rss_bytes = attached->rss_bytes,
	    .other_library = attached->other_library};
	region_header(region)->attached_after_ns = attached->after_ns + 1; /* not 0 */
	region_header(region)->attached_rss_bytes = attached->rss_bytes;
	unfollowed_begin(image);
	image_begin_period(image, attached->period_bytes);
	tend_claims(registry);
	return 0;
}

bool arrivals_has_attached(const struct books *books, pid_t pid)
{
	books_each_image (image, books)
		if (image->origin.attached_pid && region_mapped_by(image->region, pid) == REGION_MAPPED)
			return true;
	return false;
}

void arrivals_stop_attached(struct registry *registry)
{
	books_each_image (image, &registry->setup.intake->books)
		if (image->origin.attached_pid)
			atomic_store(&region_header(image->region)->mode, REGION_MODE_OFF);
}

void arrivals_visit_attached(
    struct registry *registry, void (*visit)(void *context, const struct target *target), void *context)
{
	tend_ended(registry);
	books_each_process (process, &registry->setup.intake->books)
		if (process->image->origin.attached_pid && !process->target.closed)
			visit(context, &process->target);
}

void arrivals_close_attached(struct registry *registry)
{
	drain_all(registry);
	books_each_process (process, &registry->setup.intake->books)
		if (process->image->origin.attached_pid && !process->target.closed)
			process_life_close(registry, process,
			    process_life_has_ended(registry, process) ? TARGET_GONE : TARGET_DETACHED, 0);
}
