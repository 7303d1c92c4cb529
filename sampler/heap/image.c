/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/image.h"

#include "sampler/heap/books.h"
#include "sampler/heap/offerer.h"
#include "sampler/heap/process_identity.h"
#include "sampler/heap/process_maps.h"
#include "sampler/linux/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct image *image_new(struct region *region, uint64_t now_ns)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image) {
		region_close(region);
		free(region);
		return NULL;
	}
	image->region = region;
	image->claimed_ns = now_ns;
	return image;
}

void image_free(struct image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->capture.fd_count; i++)
		close(image->capture.fds[i]);
	free(image->capture.fds);
	free(image->plan);
	offerer_free(image->offerer);
	region_close(image->region);
	free(image->region);
	free(image);
}

static void know_from_offerer(struct process *process, const struct offerer *offerer)
{
	struct target *target = &process->target;

	target->pid = offerer->target.pid;
	target->pidfd = fcntl(offerer->target.pidfd, F_DUPFD_CLOEXEC, 0);
	memcpy(target->name, offerer->target.name, sizeof(target->name));
	process->share.account = offerer->share.account; /* by now nobody may know its user */
	process->unsure = false;
}

static void enter(struct image *image, struct process *process)
{
	image->places.at[process->place] = process;
	image->places.live++;
	if (image->places.end <= process->place)
		image->places.end = process->place + 1;
}

/* As the process itself says, so that every daemon finds the same. */
static uint64_t started_ns(const struct image *image, uint32_t number)
{
	const uint64_t told_ns = *(const volatile uint64_t *)&region_place(image->region, number)->start_ns;
	const uint64_t now_ns = clock_now_ns();

	return told_ns > 0 && told_ns < now_ns ? told_ns : now_ns;
}

/* A forked child that had ended before it could be asked was started as its parent was. */
static void inherit_full_name(struct process *process, const struct process *parent)
{
	struct target *target = &process->target;

	if (parent && !target->full_name[0] && (target->pidfd < 0 || target_has_ended(target)))
		memcpy(target->full_name, parent->target.full_name, sizeof(target->full_name));
}

void image_free_process(struct process *process)
{
	struct image *image = process->image;

	image->places.at[process->place] = NULL;
	image->places.live--;
	table_remove(&image->books->processes, (uint64_t)process->target.pid, process);
	if (image->memory)
		memory_share_note(&process->share, image->memory, 0);
	target_fini(&process->target);
	heap_free(process->heap);
	free(process->walked.seen);
	free(process->walked.stack);
	free(process->walked.waiting);
	free(process);
}

static struct process *process_new(struct image *image, uint32_t number, struct modules *modules)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->image = image;
	process->place = number;
	process->generation = atomic_load(&region_place(image->region, number)->generation);
	bool ready = target_init(&process->target, 0, clock_now_ns());
	process->target.code_address = image->life.trigger_address;
	process->target.plan = image->plan;
	if (image->origin.offered)
		process->target.start_ns = process->target.sampled_ns = started_ns(image, number);
	if (image->origin.offered_after_ns && process->target.sampled_ns < image->claimed_ns)
		process->target.sampled_ns = image->claimed_ns;
	process->heap = heap_new(image->region, &image->heap);
	if (image->heap.labels & HEAP_LABEL_THREAD)
		process->target.threads = threads_new();
	process->was_running = number == 0 && image->origin.attached_pid != 0;
	process_identity_find(
	    process, process->was_running ? image->origin.attached_pid : process_identity_told_pid(process));
	const struct offerer *offerer = offerer_that_ended(process, process_identity_told_pid(process));
	if (offerer)
		know_from_offerer(process, offerer);
	process_find_account(process);
	target_note_perf_map(&process->target);
	if (!offerer)
		process_identity_read_name(process);
	struct process *parent = process_parent(process);
	process_maps_open(process, modules, parent);
	stack_log_init(&process->log, image->region, number, process->target.stacks);
	process->log.waits = image->life.state == IMAGE_ADOPTING;
	enter(image, process);
	if (!ready || !process->target.maps || !process->heap ||
	    table_add(&image->books->processes, (uint64_t)process->target.pid, process) != 0) {
		image_free_process(process);
		return NULL;
	}
	if (parent) {
		if (!process->target.name[0])
			memcpy(process->target.name, parent->target.name, sizeof(process->target.name));
		process_inherit(process);
	}
	process_weigh(process);
	process_identity_read_title(process);
	if (!offerer)
		process_identity_doubt_name(process);
	inherit_full_name(process, parent);
	offerer_forget(process);
	return process;
}

bool image_look_again(struct process *process)
{
	struct target *target = &process->target;
	pid_t before = target->pid;

	if (!process->unsure)
		return false;
	process_identity_find(process, process_identity_told_pid(process));
	if (target->pid != before) {
		table_remove(&process->image->books->processes, (uint64_t)before, process);
		/* there is room: one was just removed */
		(void)table_add(&process->image->books->processes, (uint64_t)target->pid, process);
	}
	if (target->pidfd < 0)
		return false;
	process_find_account(process);
	target_note_perf_map(target);
	process_identity_read_name(process);
	target_read_maps(target, clock_now_ns(), 0);
	process_identity_read_title(process);
	process_identity_doubt_name(process);
	return true;
}

struct process *image_process(struct image *image, uint32_t number, struct modules *modules)
{
	struct region_place *place = region_place(image->region, number);

	if (!image_is_ready(image) || !place)
		return NULL;
	if (image->places.at[number])
		return image->places.at[number];
	if (atomic_load_explicit(&place->state, memory_order_acquire) != PLACE_READY)
		return NULL;
	return process_new(image, number, modules);
}

void image_begin_period(struct image *image, uint64_t period_bytes)
{
	image->period.bytes = period_bytes;
}

/* A profile whose period is 1 says that every allocation is in it. Not so a profile with allocations from
 * before, even if none of these was a sample. */
static void note_lower_period(struct image *image, uint64_t before_bytes)
{
	image->period.lowered_unix_ns = clock_unix_ns();
	if (image->period.bytes != 1)
		return;
	image_each_process (process, image)
		heap_note_period(process->heap, before_bytes);
}

void image_set_period(struct image *image, uint64_t period_bytes)
{
	const uint64_t before_bytes = image->period.bytes;

	image->period.bytes = period_bytes;
	if (period_bytes < before_bytes)
		note_lower_period(image, before_bytes);
	region_set_period(region_header(image->region), period_bytes);
}
