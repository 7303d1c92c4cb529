/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that were there before: of an earlier sampler, offered, or attached to while they run. */
#include "sampler/heap/adoption.h"
#include "sampler/heap/claims.h"
#include "sampler/heap/image.h"
#include "sampler/heap/registry.h"
#include "sampler/heap/registry_steps.h"
#include "sampler/heap/unfollowed.h"
#include "sampler/heap/walked.h"

#include <errno.h>
#include <stdlib.h>

static void adopt(struct registry *registry, struct image *image)
{
	struct region_header *header = region_header(image->region);

	image->ready = image->settled = image->adopting = true;
	image->trigger_address = header->trigger_address;
	image->attached_after_ns = header->attached_after_ns;
	image->attached_rss_bytes = header->attached_rss_bytes;
	claims_adopt(image);
	for (uint32_t i = 0; i < REGION_PLACES; i++) {
		struct process *process = image_process(image, i, registry->modules);

		if (!process)
			continue;
		if (i == 0 && image->attached_after_ns)
			image->attached_pid = process->target.pid;
		adoption_begin(process);
		registry_watch(registry, process);
	}
	walked_begin(image); /* what it counts is later than what has been read of each place */
	if (image->attached_pid)
		unfollowed_begin(image);
	image->places_seen = atomic_load(&header->places_claimed);
	image->backend = image->event_backend =
	    registry->probe->backend == BACKEND_UPROBE ? BACKEND_UPROBE : BACKEND_COPY;
	atomic_store(
	    &header->mode, image->backend == BACKEND_UPROBE ? REGION_MODE_TRIGGER : REGION_MODE_COPY);
}

int registry_adopt(struct registry *registry, struct region *region)
{
	struct image *image = registry_add_image(registry, region);

	if (!image)
		return -ENOMEM;
	adopt(registry, image);
	return 0;
}

int registry_take_offer(struct registry *registry, const struct registry_offer *offer)
{
	struct image *image = registry_add_image(registry, offer->region);

	if (!image) {
		free(offer->plan);
		return -ENOMEM;
	}
	image->offered = true;
	image->plan = offer->plan;
	image->period_bytes = offer->period_bytes;
	image->mapped_by = offer->pid;
	image->offered_after_ns = offer->used ? 0 : offer->after_ns;
	image->finding = process_find(offer->pid, target_account(&(struct target){.plan = offer->plan}),
	    registry->modules, image->memory);
	/* Else it has ended, or executed another program, and what was found is that one's. */
	if (image->finding && region_mapped_by(offer->region, offer->pid) != REGION_MAPPED) {
		process_finding_free(image->finding);
		image->finding = NULL;
	}
	if (offer->used)
		adopt(registry, image);
	return 0;
}

int registry_attach(
    struct registry *registry, struct region *region, const struct registry_attached *attached)
{
	struct image *image = registry_add_image(registry, region);

	if (!image) {
		free(attached->plan);
		return -ENOMEM;
	}
	image->attached_pid = attached->pid;
	image->attached_after_ns = attached->after_ns;
	image->attached_rss_bytes = attached->rss_bytes;
	region_header(region)->attached_after_ns = attached->after_ns + 1; /* not 0 */
	region_header(region)->attached_rss_bytes = attached->rss_bytes;
	image->other_library = attached->other_library;
	unfollowed_begin(image);
	image->plan = attached->plan;
	image->period_bytes = attached->period_bytes;
	registry_settle_claims(registry);
	return 0;
}

void registry_close_attached(struct registry *registry)
{
	const struct table *processes = &registry->intake->processes;

	registry_drain(registry);
	/* From behind: a process that goes is replaced by the last. */
	for (size_t i = processes->count; i-- > 0;) {
		struct process *process = processes->entries[i].item;

		if (process->image->attached_pid && !process->target.closed)
			registry_finish(registry, process,
			    registry_has_ended(registry, process) ? TARGET_GONE : TARGET_DETACHED, 0);
	}
}

void registry_stop_attached(struct registry *registry)
{
	for (struct image *image = registry->intake->images; image; image = image->next)
		if (image->attached_pid)
			atomic_store(&region_header(image->region)->mode, REGION_MODE_OFF);
}

void registry_visit_attached(
    struct registry *registry, void (*visit)(void *context, const struct target *target), void *context)
{
	const struct table *processes = &registry->intake->processes;

	registry_finish_ended(registry);
	for (size_t i = processes->count; i-- > 0;) {
		struct process *process = processes->entries[i].item;

		if (process->image->attached_pid && !process->target.closed)
			visit(context, &process->target);
	}
}
