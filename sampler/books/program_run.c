/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/program_run.h"

#include "pprof/text/clock.h"
#include "proto/loader_log.h"
#include "sampler/books/books.h"
#include "sampler/books/offerer.h"
#include "sampler/books/process_identity.h"
#include "sampler/books/stack_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct program_run *program_run_new(struct region *region, uint64_t now_ns)
{
	struct program_run *run = calloc(1, sizeof(*run));

	if (!run) {
		region_close(region);
		free(region);
		return NULL;
	}
	run->region = region;
	run->claimed_ns = now_ns;
	return run;
}

void program_run_free(struct program_run *run)
{
	if (!run)
		return;
	for (size_t i = 0; i < run->capture.fd_count; i++)
		close(run->capture.fds[i]);
	free(run->capture.fds);
	free(run->plan);
	offerer_free(run->offerer);
	region_close(run->region);
	free(run->region);
	free(run);
}

pid_t program_run_pid(const struct program_run *run)
{
	const struct process *first = run->places.at[0];

	if (first)
		return first->target.pid;
	return run->region->taken_by ? run->region->taken_by : (pid_t)region_header(run->region)->pid;
}

/* ---- the maps of a new process */

/* A path under /proc or /dev/fd may lead to any program, so it is no name. */
static bool is_name(const char *path)
{
	return strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/dev/fd/", 8) != 0;
}

/* Finds where the process counts its unmapped libraries, and which process notes them. A forked child
 * counts on from its parent's count. Up to there the program run's notes, or the parent's maps, are good
 * for the child too. */
static void find_past(struct process *process, const struct process *parent)
{
	const struct region *region = process->run->region;
	const struct region_place *place = region_place(region, process->place);
	const uint64_t forked = loader_log_count(*(const volatile uint64_t *)&place->forked_unmaps);
	struct target_past_source *source = &process->target.past.source;

	*source = (struct target_past_source){.place = place, .header = region_header(region)};
	if (process->place != 0 && (!parent || forked > parent->target.past.source.log_until))
		return;
	source->log = process->place == 0 ? &region_walk(region)->loader_log : parent->target.past.source.log;
	source->log_until = process->place == 0 ? UINT64_MAX : forked;
}

/* The time of maps that another process' reading gave. */
static uint64_t read_at_of(const struct process *process, uint64_t read_at)
{
	const uint64_t forked = *(const volatile uint64_t *)&process->target.past.source.place->forked_unmaps;

	return loader_log_count(read_at) <= loader_log_count(forked) ? read_at : TARGET_PAST_UNKNOWN;
}

/* Takes the maps from the list of files that the loader had mapped, in the region: the only source if the
 * process has already ended. */
static void maps_from_region(struct process *process)
{
	const struct region *region = process->run->region;
	const unsigned char *at = region->base + region->offsets.modules, *end = at + REGION_MODULES_BYTES;

	for (uint32_t i = 0; i < 4096 && (size_t)(end - at) > sizeof(struct region_module); i++) {
		struct region_module module;
		char path[REGION_PATH_BYTES];

		memcpy(&module, at, sizeof(module));
		if (module.total_bytes < sizeof(module) || module.total_bytes > (size_t)(end - at) ||
		    module.path_bytes < 1 || module.path_bytes > sizeof(path) ||
		    module.path_bytes > module.total_bytes - sizeof(module) || module.end < module.start)
			break;
		memcpy(path, at + sizeof(module), module.path_bytes);
		path[module.path_bytes - 1] = '\0';
		at += module.total_bytes;
		if (!process->target.name[0] && is_name(path))
			snprintf(process->target.name, sizeof(process->target.name), "%s", path);
		if (module.start == module.end)
			continue; /* only the path by which the program was executed */
		const struct map_range range = {
		    .start = module.start,
		    .len = module.end - module.start,
		    .pgoff = module.file_offset,
		    .prot = PROT_READ | PROT_EXEC,
		    .path = strncmp(path, "linux-vdso", 10) == 0 || strcmp(path, "linux-gate.so.1") == 0
		        ? "[vdso]"
		        : path,
		    .build_id = module.build_id_bytes ? module.build_id : NULL,
		    .build_id_len =
		        (uint8_t)(module.build_id_bytes <= REGION_BUILD_ID_MAX ? module.build_id_bytes : 0),
		    .major = major(module.dev),
		    .minor = minor(module.dev),
		    .ino = module.ino,
		    .listed = true,
		};
		maps_add(process->target.maps, &range);
	}
}

/* For a program run that has offered its region, and so lists no files: another process of the program
 * run, whose maps are alike. */
static const struct target *alike_of_run(const struct process *process)
{
	const struct program_run *run = process->run;

	if (!run->origin.offered)
		return NULL;
	if (run->offerer)
		return &run->offerer->target;
	return run->places.at[0] ? &run->places.at[0]->target : NULL;
}

/* Reads the maps from /proc, or, if the process has ended already, takes what others know of them. The target
 * has none if memory is short. `parent` may be NULL. */
static void open_maps(struct process *process, struct modules *modules, const struct process *parent)
{
	struct target *target = &process->target;
	uint64_t read_ns = 0;

	find_past(process, parent);
	target_take_maps(target, offerer_take_maps(process, &read_ns), read_ns);
	if (target->maps) {
		target_note_reading(target, 0); /* the count was not read then */
		return;
	}
	target->maps = maps_new(modules, target->readable ? target->pid : 0, true);
	process_look_for_maps_room(process);
	if (!target->maps || (target_read_maps(target, clock_now_ns(), 0) && maps_count(target->maps) > 0))
		return;
	const struct target *alike = alike_of_run(process);
	if (!alike && parent)
		alike = &parent->target;
	if (alike) {
		target_take_maps(target, maps_copy(alike->maps, 0, target->maps_room_bytes), 0);
		target->past.read_at = read_at_of(process, alike->past.read_at);
		return;
	}
	target_take_maps(target, target->maps, 0);
	maps_from_region(process);
	target->past.read_at = 0;
}

/* ---- a new process */

static void know_from_offerer(struct process *process, const struct offerer *offerer)
{
	struct target *target = &process->target;

	target->pid = offerer->target.pid;
	target->pidfd = fcntl(offerer->target.pidfd, F_DUPFD_CLOEXEC, 0);
	memcpy(target->name, offerer->target.name, sizeof(target->name));
	process->share.account = offerer->share.account; /* its user may be gone by now */
	process->unsure = false;
}

static void enter(struct program_run *run, struct process *process)
{
	run->places.at[process->place] = process;
	run->places.live++;
	if (run->places.end <= process->place)
		run->places.end = process->place + 1;
}

/* The time that the process itself tells, so that every daemon finds the same. */
static uint64_t started_ns(const struct program_run *run, uint32_t number)
{
	const uint64_t told_ns = *(const volatile uint64_t *)&region_place(run->region, number)->start_ns;
	const uint64_t now_ns = clock_now_ns();

	return told_ns > 0 && told_ns < now_ns ? told_ns : now_ns;
}

/* A forked child that had ended before it could be asked has the command line of its parent. */
static void inherit_full_name(struct process *process, const struct process *parent)
{
	struct target *target = &process->target;

	if (parent && !target->full_name[0] && (target->pidfd < 0 || target_has_ended(target)))
		memcpy(target->full_name, parent->target.full_name, sizeof(target->full_name));
}

void program_run_free_process(struct process *process)
{
	struct program_run *run = process->run;

	run->places.at[process->place] = NULL;
	run->places.live--;
	table_remove(&run->books->processes, (uint64_t)process->target.pid, process);
	if (run->memory)
		memory_share_note(&process->share, run->memory, 0);
	target_fini(&process->target);
	heap_free(process->heap);
	free(process->walked.seen);
	free(process->walked.stack);
	free(process->walked.waiting);
	free(process);
}

static void begin_target(struct process *process)
{
	const struct program_run *run = process->run;
	struct target *target = &process->target;

	target->code_address = run->life.trigger_address;
	target->plan = run->plan;
	if (run->origin.offered)
		target->start_ns = target->sampled_ns = started_ns(run, process->place);
	if (run->origin.offered_after_ns && target->sampled_ns < run->claimed_ns)
		target->sampled_ns = run->claimed_ns;
	if (run->heap.labels & HEAP_LABEL_THREAD)
		target->threads = threads_new();
}

/* Who the process is, before its maps are read. Returns what is known of it from before its end; NULL: it
 * lives, or nothing is known. */
static const struct offerer *find_who(struct process *process)
{
	process->was_running = process->place == 0 && process->run->origin.attached_pid != 0;
	process_identity_find(process);
	const struct offerer *offerer = offerer_that_ended(process, process_identity_told_pid(process));
	if (offerer)
		know_from_offerer(process, offerer);
	process_find_account(process);
	target_note_perf_map(&process->target);
	if (!offerer)
		process_identity_read_name(process);
	return offerer;
}

static void begin_books(struct process *process)
{
	process->heap = heap_new(process->run->region, &process->run->heap);
	stack_log_init(&process->log, process->run->region, process->place, process->target.stacks);
	process->log.waits = process->run->life.state == RUN_ADOPTING;
}

/* What the process is called, after its maps were read: until then it may have executed another program. */
static void find_names(struct process *process, const struct process *parent, const struct offerer *offerer)
{
	if (parent && !process->target.name[0])
		memcpy(process->target.name, parent->target.name, sizeof(process->target.name));
	process_identity_read_title(process);
	if (!offerer)
		process_identity_doubt_name(process);
	inherit_full_name(process, parent);
}

static struct process *process_new(struct program_run *run, uint32_t number, struct modules *modules)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->run = run;
	process->place = number;
	process->generation = atomic_load(&region_place(run->region, number)->generation);
	const bool ready = target_init(&process->target, 0, clock_now_ns());
	begin_target(process);
	const struct offerer *offerer = find_who(process);
	struct process *parent = process_parent(process);
	open_maps(process, modules, parent);
	begin_books(process);
	enter(run, process);
	if (!ready || !process->target.maps || !process->heap ||
	    table_add(&run->books->processes, (uint64_t)process->target.pid, process) != 0) {
		program_run_free_process(process);
		return NULL;
	}
	if (parent)
		process_inherit(process);
	process_weigh(process);
	find_names(process, parent, offerer);
	offerer_forget(process);
	return process;
}

bool program_run_look_again(struct process *process)
{
	struct target *target = &process->target;
	pid_t before = target->pid;

	if (!process->unsure)
		return false;
	process_identity_find(process);
	if (target->pid != before) {
		table_remove(&process->run->books->processes, (uint64_t)before, process);
		/* there is room: one was just removed */
		(void)table_add(&process->run->books->processes, (uint64_t)target->pid, process);
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

struct process *program_run_meet(struct program_run *run, uint32_t number, struct modules *modules)
{
	const struct region_place *place = region_place(run->region, number);

	if (!program_run_is_ready(run) || !place)
		return NULL;
	if (run->places.at[number])
		return run->places.at[number];
	const bool claimed = atomic_load_explicit(&place->state, memory_order_acquire) == PLACE_READY;
	return claimed ? process_new(run, number, modules) : NULL;
}

void program_run_begin_period(struct program_run *run, uint64_t period_bytes)
{
	run->period.bytes = period_bytes;
}

/* A profile whose period is 1 says that every allocation is in it. Not so a profile with allocations from
 * before, even if none of these was a sample. */
static void note_lower_period(struct program_run *run, uint64_t before_bytes)
{
	run->period.lowered_unix_ns = clock_unix_ns();
	if (run->period.bytes != 1)
		return;
	program_run_each_process(process, run) heap_note_period(process->heap, before_bytes);
}

void program_run_set_period(struct program_run *run, uint64_t period_bytes)
{
	const uint64_t before_bytes = run->period.bytes;

	run->period.bytes = period_bytes;
	if (period_bytes < before_bytes)
		note_lower_period(run, before_bytes);
	region_set_period(region_header(run->region), period_bytes);
}
