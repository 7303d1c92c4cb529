/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's samples and frees: read from where the hook and the kernel have left them. */
#include "sampler/heap/registry.h"

#include "sampler/heap/free_log.h"
#include "sampler/heap/walked.h"
#include "sampler/linux/clock.h"

/* Before the rings are emptied, and after: what was asked for until then is in them no more. */
static void note_dumps(struct image *image)
{
	image->dumps_noted = atomic_load_explicit(&region_header(image->region)->dumps, memory_order_relaxed);
}

static void tell_dumps(const struct image *image)
{
	_Atomic uint64_t *read = &region_header(image->region)->dumps_read;

	if (atomic_load_explicit(read, memory_order_relaxed) != image->dumps_noted)
		atomic_store_explicit(read, image->dumps_noted, memory_order_relaxed);
}

/* Copied samples and frees alone. */
static void drain_image(struct registry *registry, struct image *image, uint64_t now_ns, size_t *frees)
{
	const size_t copied =
	    intake_buffers(registry->intake, image, registry->probe->rings ? now_ns : UINT64_MAX);

	/* before the frees: blocks may have been allocated and freed since the last drain */
	registry->intake->taken += walked_drain(image, registry->intake->maps_follow);
	const size_t freed = free_log_drain(image, now_ns);
	*frees += freed;
	if (copied + freed > registry->drained_most)
		registry->drained_most = copied + freed;
}

/* What no image has of its own. */
static size_t end_drain(struct registry *registry, uint64_t before, size_t frees, uint64_t now_ns)
{
	if (backend_fallback_tend(
	        &registry->fallback, registry->intake->images, registry->intake->ring_lost, now_ns) &&
	    registry->pool)
		region_pool_set_mode(registry->pool, backend_fallback_mode(&registry->fallback));
	if (registry->verbosity >= 0)
		memory_bound_say(registry->intake->memory);
	/* Not the number of records: a system-wide uprobe event also reports all other processes' mappings.
	 */
	return registry->intake->taken - before + frees;
}

size_t registry_drain(struct registry *registry)
{
	const uint64_t before = registry->intake->taken, now = clock_now_ns();

	for (struct image *image = registry->intake->images; image; image = image->next)
		if (image->ready) {
			free_log_note(image);
			note_dumps(image);
		}
	if (registry->probe->rings)
		rings_drain(registry->probe->rings, registry->probe->regs_mask, intake_record,
		    registry->intake, &registry->intake->bad);
	size_t frees = 0;
	registry->drained_most = 0;
	for (struct image *image = registry->intake->images; image; image = image->next)
		if (image->ready) {
			tell_dumps(image);
			drain_image(registry, image, now, &frees);
		}
	return end_drain(registry, before, frees, now);
}

size_t registry_drain_some(struct registry *registry, uint64_t budget_ns)
{
	const uint64_t before = registry->intake->taken, now = clock_now_ns();
	size_t frees = 0;
	bool in_time = true, left = false;

	if (registry->probe->rings)
		return registry_drain(registry);
	registry->drained_most = 0;
	for (struct image *image = registry->intake->images; image; image = image->next) {
		if (!image->ready || image->drain_round == registry->drain_round)
			continue;
		if (!in_time) {
			left = true;
			break;
		}
		free_log_note(image);
		drain_image(registry, image, clock_now_ns(), &frees);
		image->drain_round = registry->drain_round;
		in_time = clock_now_ns() - now < budget_ns;
	}
	registry->drain_round += !left;
	return end_drain(registry, before, frees, now);
}

void registry_drain_image(struct registry *registry, struct image *image)
{
	size_t frees = 0;

	if (registry->probe->rings) {
		registry_drain(registry);
		return;
	}
	free_log_note(image);
	drain_image(registry, image, clock_now_ns(), &frees);
}

void registry_drain_ended(struct registry *registry)
{
	const struct table *processes = &registry->intake->processes;

	if (registry->probe->rings) {
		registry_drain(registry); /* once for all of them */
		return;
	}
	for (size_t i = 0; i < processes->count; i++) {
		const struct process *process = processes->entries[i].item;

		if (process->ended && !process->target.closed)
			registry_drain_image(registry, process->image);
	}
}
