/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/image.h"

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
	for (size_t i = 0; i < image->fd_count; i++)
		close(image->fds[i]);
	free(image->fds);
	free(image->plan);
	process_finding_free(image->finding);
	region_close(image->region);
	free(image->region);
	free(image);
}

/* It has ended already, and is whoever offered the region, as its number says. */
static const struct process_finding *found_before(const struct process *process, pid_t told)
{
	const struct process_finding *finding = process->image->finding;

	return process->target.pidfd < 0 && finding && told &&
	        (told == finding->target.pid || told == finding->inner)
	    ? finding
	    : NULL;
}

/* It has a book of its own now. */
static void forget_finding(const struct process *process)
{
	struct image *image = process->image;

	if (!image->finding || image->finding->target.pid != process->target.pid)
		return;
	process_finding_free(image->finding);
	image->finding = NULL;
}

static void know_from_finding(struct process *process, const struct process_finding *finding)
{
	struct target *target = &process->target;

	target->pid = finding->target.pid;
	target->pidfd = fcntl(finding->target.pidfd, F_DUPFD_CLOEXEC, 0);
	memcpy(target->name, finding->target.name, sizeof(target->name));
	process->share.account = finding->share.account; /* by now nobody may know its user */
	process->unsure = false;
}

static void enter(struct image *image, struct process *process)
{
	image->process[process->place] = process;
	image->live_processes++;
	if (image->places_end <= process->place)
		image->places_end = process->place + 1;
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

static struct process *process_new(struct image *image, uint32_t number, struct modules *modules)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->image = image;
	process->place = number;
	process->generation = atomic_load(&region_place(image->region, number)->generation);
	bool ready = target_init(&process->target, 0, clock_now_ns());
	process->target.code_address = image->trigger_address;
	process->target.plan = image->plan;
	if (image->offered)
		process->target.start_ns = process->target.sampled_ns = started_ns(image, number);
	if (image->offered_after_ns && process->target.sampled_ns < image->claimed_ns)
		process->target.sampled_ns = image->claimed_ns;
	process->heap = heap_new(image->region, &image->heap);
	if (image->heap.labels & HEAP_LABEL_THREAD)
		process->target.threads = threads_new();
	process->was_running = number == 0 && image->attached_pid != 0;
	process_identity_find(
	    process, process->was_running ? image->attached_pid : process_identity_told_pid(process));
	const struct process_finding *finding = found_before(process, process_identity_told_pid(process));
	if (finding)
		know_from_finding(process, finding);
	process_find_account(process);
	target_note_perf_map(&process->target);
	if (!finding)
		process_identity_read_name(process);
	struct process *parent = process_parent(process);
	process_maps_open(process, modules, parent);
	stack_log_init(&process->log, image->region, number, process->target.stacks);
	process->log.waits = image->adopting;
	enter(image, process);
	if (!ready || !process->target.maps || !process->heap ||
	    table_add(image->processes, (uint64_t)process->target.pid, process) != 0) {
		process_free(process);
		return NULL;
	}
	if (parent) {
		if (!process->target.name[0])
			memcpy(process->target.name, parent->target.name, sizeof(process->target.name));
		process_inherit(process);
	}
	process_weigh(process);
	process_identity_read_title(process);
	if (!finding)
		process_identity_doubt_name(process);
	inherit_full_name(process, parent);
	forget_finding(process);
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
		table_remove(process->image->processes, (uint64_t)before, process);
		/* there is room: one was just removed */
		(void)table_add(process->image->processes, (uint64_t)target->pid, process);
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

	if (!image->ready || !place)
		return NULL;
	if (image->process[number])
		return image->process[number];
	if (atomic_load_explicit(&place->state, memory_order_acquire) != PLACE_READY)
		return NULL;
	return process_new(image, number, modules);
}
