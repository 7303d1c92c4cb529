/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's processes, one after the other. */
#include "sampler/heap/registry.h"

const struct process *registry_find(const struct registry *registry, pid_t pid)
{
	const struct process *process;
	size_t cursor = 0;

	while ((process = table_next(&registry->intake->processes, (uint64_t)pid, &cursor)))
		if (process->watched && !process->target.closed && process->target.pidfd >= 0 &&
		    !process->image->unchosen)
			return process;
	return NULL;
}

void registry_know_command(struct registry *registry)
{
	struct process *process;
	const pid_t pid = registry->launch->pid;
	size_t cursor = 0;

	while ((process = table_next(&registry->intake->processes, (uint64_t)pid, &cursor))) {
		if (!process->watched)
			continue;
		process->target.command = registry->command_seen = true;
		registry->command_unchosen = process->image->unchosen;
	}
	for (const struct image *image = registry->intake->images; image; image = image->next)
		if (image->declined && region_header(image->region)->pid == (uint32_t)pid)
			registry->command_declined_text = image->declined;
}

void registry_set_period(struct registry *registry, uint64_t period_bytes)
{
	if (registry->pool)
		region_pool_set_period(registry->pool, period_bytes);
	for (struct image *image = registry->intake->images; image; image = image->next)
		if (!image->period_bytes) /* else it has its own */
			region_set_period(region_header(image->region), period_bytes);
}

size_t registry_running(const struct registry *registry)
{
	const struct table *processes = &registry->intake->processes;
	size_t count = 0;

	for (size_t i = 0; i < processes->count; i++) {
		const struct process *process = processes->entries[i].item;

		/* What it has executed has an image of its own, or will have, or is not profiled. */
		count += process->watched && !process->target.closed && !process->target.unseen[0] &&
		    !process->image->unchosen;
	}
	return count;
}

bool registry_empty(const struct registry *registry)
{
	return !registry->intake->images;
}

/* Place 0 is kept as long as its image: children may still need stacks that they inherited from it. */
void registry_release(struct registry *registry, struct process *process)
{
	process->image->unreleased--;
	region_release_place_of(process->image->region, process->place, process->generation);
	if (process->place != 0)
		process_free(process);
}

struct image *registry_image_of(const struct registry *registry, uint64_t ino)
{
	for (struct image *image = registry->intake->images; image; image = image->next)
		if (image->region->ino == ino)
			return image;
	return NULL;
}
