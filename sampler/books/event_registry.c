/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/event_registry.h"

#include "pprof/text/clock.h"
#include "sampler/intake/map_record.h"
#include "sampler/intake/walk.h"
#include "sampler/linux/epoll_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SWEEP_NS = 500 * 1000000, /* between checks of all processes: an EXIT record may have been lost */
	/* a record's time is taken at most this long before it is written */
	YOUNG_NS = 1 * 1000000,
	KERNEL_FRAMES = 256, /* the kernel's own limit is 127 (kernel.perf_event_max_stack) */
};

/* An address at which nothing is mapped (struct target's code_address). */
#define CODE_UNKNOWN UINT64_MAX

/* ---- stacks */

/* Puts the kernel's frames, innermost first, into `frames`. All but the first are return addresses. */
static size_t kernel_frames(const struct record *record, struct unwind_frame *frames)
{
	size_t count = 0;
	bool kernel = false;

	for (size_t i = 0; i < record->chain_count && count < KERNEL_FRAMES; i++) {
		uint64_t pc = record->chain[i];

		if (pc >= (uint64_t)PERF_CONTEXT_MAX) {
			kernel = pc == (uint64_t)PERF_CONTEXT_KERNEL;
			continue;
		}
		if (!kernel || pc < MAP_KERNEL_START)
			continue;
		frames[count] = (struct unwind_frame){.pc = pc - (count > 0),
		    .vaddr = pc - (count > 0),
		    .kind = MAP_KIND_KERNEL,
		    .step = UNWIND_STEP_FIRST,
		    .activation = count == 0};
		count++;
	}
	return count;
}

/* Returns the stack's number, or UINT32_MAX if memory is short. */
static uint32_t take_stack(
    const struct event_registry *r, struct event_process *s, const struct record *record)
{
	size_t kernel = kernel_frames(record, r->frames);
	const struct regs_arch *arch = regs_arch_native();
	struct regs regs;
	bool known = record->regs_abi == PERF_SAMPLE_REGS_ABI_64 &&
	    regs_from_perf(arch, arch->perf_mask, record->regs, record->regs_count, &regs) == 0;
	const struct walk_sample sample = {
	    .regs = known ? &regs : NULL,
	    .stack = record->stack,
	    .stack_bytes = record->stack_bytes,
	    .stack_want = record->stack_want,
	    .maps_follow = true,
	};

	return walk_take(&s->target, &sample, r->frames, kernel, s->outcome[record->source->event], NULL);
}

/* ---- samples */

/* The size of the page that a fault added. An invalid size counts as the smallest page size. */
static uint64_t page_bytes(const struct record *record)
{
	uint64_t smallest = (uint64_t)sysconf(_SC_PAGESIZE), bytes = record->data_page_bytes;
	bool sane = bytes >= smallest && bytes <= UINT64_C(1) << 34 && (bytes & (bytes - 1)) == 0;

	return sane ? bytes : smallest;
}

static struct event_process *subject_of(struct event_registry *r, const struct record *record)
{
	struct event_process *s = event_processes_find(&r->subjects, (pid_t)record->pid);

	if (!s) {
		/* The FORK record was lost, or arrives after the sample. */
		s = event_processes_add(&r->subjects, (pid_t)record->pid, NULL, record->time_ns);
		if (s)
			target_read_maps(&s->target, clock_now_ns(), 0);
	}
	if (s)
		event_process_look(s);
	return s;
}

static void take_sample(struct event_registry *r, const struct record *record)
{
	uint32_t number = record->source->event;

	if (number >= r->setup.event_count)
		return;
	const struct event *event = &r->setup.events[number];
	struct event_process *s = subject_of(r, record);
	struct event_row row = {.samples = 1,
	    .value = event->hz ? record->period : event->period,
	    .tid = r->setup.by_thread ? record->tid : 0};
	row.bytes = event->kind == EVENT_FAULT ? row.value * page_bytes(record) : 0;
	event_row_add(&r->sum[number], &row);
	if (!s)
		return;
	if (!event_process_has_samples(s)) {
		r->sampled++;
		r->setup.listener.watched(r->setup.listener.context, &s->target);
	}
	if (!s->books[number])
		s->books[number] = event_book_new();
	if (r->setup.by_thread && !s->target.threads)
		s->target.threads = threads_new();
	target_see_thread(&s->target, record->tid, true);
	event_process_look_for_room(s, r->subjects.memory);
	row.stack = take_stack(r, s, record);
	if (row.stack == UINT32_MAX || !s->books[number] || !event_book_add(s->books[number], &row)) {
		s->no_room++;
		r->subjects.memory->refused++;
	}
	event_process_weigh(s, r->subjects.memory);
}

/* ---- processes */

static void finish(struct event_registry *r, struct event_process *s, enum target_end end, int status)
{
	target_close(&s->target, end, status);
	s->target.command = s->target.pid == r->setup.launch->pid;
	r->setup.listener.closed(r->setup.listener.context, &s->target);
}

static void take_fork(struct event_registry *r, const struct record *record)
{
	counters_note_fork(r->counters, record);
	if (record->pid == record->parent_pid)
		return;
	const struct event_process *parent = event_processes_find(&r->subjects, (pid_t)record->parent_pid);
	struct event_process *s = event_processes_find(&r->subjects, (pid_t)record->pid);
	if (s && s->target.start_ns >= record->time_ns)
		return; /* a sample of the process arrived first */
	if (s)
		finish(r, s, TARGET_GONE, 0); /* its EXIT record was lost */
	event_processes_add(&r->subjects, (pid_t)record->pid, parent, record->time_ns);
}

static void take_comm(struct event_registry *r, const struct record *record)
{
	struct event_process *s = event_processes_find(&r->subjects, (pid_t)record->pid);

	if (!record->exec) {
		if (s && s->target.threads)
			threads_call(s->target.threads, record->tid, record->path);
		return;
	}
	if (s && s->target.start_ns < record->time_ns) {
		finish(r, s, TARGET_EXEC, 0);
		s = NULL;
	}
	if (!s)
		s = event_processes_add(&r->subjects, (pid_t)record->pid, NULL, record->time_ns);
	if (!s)
		return;
	strncpy(s->comm, record->path, sizeof(s->comm) - 1);
	/* By now the process may execute yet another program. Its maps in /proc are used only after a record
	 * has told where the executable is, which the kernel maps first, and only if the executable is
	 * mapped there. */
	s->target.code_address = CODE_UNKNOWN;
}

static void take_mmap(struct event_registry *r, const struct record *record)
{
	struct event_process *s = event_processes_find(&r->subjects, (pid_t)record->pid);
	const struct map_range range = map_record_range(record);

	if (!s)
		return;
	maps_add(s->target.maps, &range);
	if (s->target.code_address == CODE_UNKNOWN && record->path[0] == '/')
		s->target.code_address = record->start;
}

static void take_record(void *context, const struct record *record)
{
	struct event_registry *r = context;
	struct event_process *s;

	switch (record->kind) {
	case RECORD_SAMPLE:
		if (record->source)
			take_sample(r, record);
		else
			r->bad++;
		break;
	case RECORD_MMAP:
		take_mmap(r, record);
		break;
	case RECORD_COMM:
		take_comm(r, record);
		break;
	case RECORD_FORK:
		take_fork(r, record);
		break;
	case RECORD_EXIT:
		s = event_processes_find(&r->subjects, (pid_t)record->pid);
		if (s)
			s->exits = true;
		break;
	case RECORD_THROTTLE:
		if (record->source && record->source->event < r->setup.event_count)
			r->throttled[record->source->event]++;
		break;
	default:
		break;
	}
}

/* Leaves records that are so young that an older one may still arrive; with `everything` reads these too. */
static void drain_rings(struct event_registry *r, bool everything)
{
	rings_drain_events(counters_rings(r->counters), counters_layouts(r->counters),
	    everything ? UINT64_MAX : clock_now_ns() - YOUNG_NS, take_record, r, &r->bad);
}

/* ---- the end of a process */

/* COMMAND's own end waits for the front, which knows its status. */
static bool is_over(const struct event_registry *r, const struct event_process *s)
{
	const struct launch *launch = r->setup.launch;

	return s->target.pid == launch->pid && !launch->front_gone ? launch->ended
	                                                           : target_has_ended(&s->target);
}

void event_registry_sweep(struct event_registry *r, bool all)
{
	const struct launch *launch = r->setup.launch;
	bool drained = false;

	for (struct event_process *s = r->subjects.list, *next; s; s = next) {
		next = s->next;
		bool is_command = s->target.pid == launch->pid;
		if (s->target.closed || (!s->exits && !all && !is_command))
			continue;
		if (!is_over(r, s)) {
			/* a thread of the process has ended: if all are looked at, that was long ago */
			s->exits = s->exits && !all;
			continue;
		}
		if (!drained) {
			/* May add and remove processes: begin again. */
			drained = true;
			event_registry_drain(r);
			next = r->subjects.list;
		} else if (is_command && launch->status_known) {
			finish(r, s, TARGET_EXITED, launch->status);
		} else {
			finish(r, s, TARGET_GONE, 0);
		}
	}
}

void event_registry_tend(struct event_registry *r, uint64_t now_ns)
{
	if (!r || r->stopped)
		return;
	drain_rings(r, false);
	counters_tend(r->counters);
	if (r->setup.verbosity >= 0)
		memory_bound_say(r->setup.memory);
	bool all = now_ns - r->sweep_ns >= SWEEP_NS;
	if (all)
		r->sweep_ns = now_ns;
	event_registry_sweep(r, all);
}

void event_registry_drain(struct event_registry *r)
{
	if (r && !r->stopped)
		drain_rings(r, true);
}

void event_registry_stop(struct event_registry *r)
{
	if (!r)
		return;
	event_registry_drain(r);
	r->stopped = true;
	for (struct event_process *s = r->subjects.list, *next; s; s = next) {
		next = s->next;
		if (!s->target.closed)
			finish(r, s, TARGET_ALIVE, 0);
	}
}

struct event_process *event_registry_find(const struct event_registry *r, pid_t pid)
{
	return r ? event_processes_find(&r->subjects, pid) : NULL;
}

void event_registry_release(struct event_registry *r, struct event_process *process)
{
	event_processes_remove(&r->subjects, process);
}

bool event_registry_settled(const struct event_registry *r)
{
	return !r || !r->setup.launch->ended || !event_registry_find(r, r->setup.launch->pid);
}

bool event_registry_empty(const struct event_registry *r)
{
	return !r || !r->subjects.list;
}

/* ---- the beginning */

static void drain(void *context)
{
	event_registry_drain(context);
}

int event_registry_attach_command(struct event_registry *r, pid_t command)
{
	int error = counters_attach_waiting(r->counters, command);

	if (!error && !event_processes_add(&r->subjects, command, NULL, clock_now_ns()))
		error = -ENOMEM;
	return error;
}

void event_registry_cancel(struct event_registry *r, pid_t command)
{
	struct event_process *s = event_registry_find(r, command);

	if (s)
		event_registry_release(r, s);
}

int event_registry_attach_running(struct event_registry *r, pid_t pid)
{
	struct event_process *s = event_processes_add(&r->subjects, pid, NULL, clock_now_ns());

	if (!s)
		return -ENOMEM;
	target_read_maps(&s->target, clock_now_ns(), 0); /* its name is used only if its file is mapped */
	event_process_look(s);
	int error = s->target.pidfd < 0 ? -ESRCH : counters_attach_running(r->counters, pid, drain, r);
	if (error) {
		event_registry_release(r, s);
		return error;
	}
	/* Records report mappings that are newer than the trackers. To read those again does no harm. */
	target_read_maps(&s->target, clock_now_ns(), 0);
	return 0;
}

struct event_registry *event_registry_new(const struct event_registry_setup *setup, int *error)
{
	struct event_registry *r = setup->event_count ? calloc(1, sizeof(*r)) : NULL;

	*error = setup->event_count ? -ENOMEM : 0;
	if (!r)
		return NULL;
	r->setup = *setup;
	r->counters = counters_open(setup->events, setup->event_count, setup->stack_bytes, error);
	r->subjects.modules = setup->modules;
	r->subjects.memory = setup->memory;
	r->frames = malloc((KERNEL_FRAMES + UNWIND_FRAMES_MAX) * sizeof(*r->frames));
	if (r->counters)
		*error = r->frames ? 0 : -ENOMEM;
	if (*error) {
		event_registry_free(r);
		return NULL;
	}
	struct rings *rings = counters_rings(r->counters);
	for (size_t i = 0; i < rings_count(rings); i++) /* without that, a full ring is noticed at a tick */
		(void)epoll_set_add(setup->epoll_fd, rings_fd(rings, i));
	return r;
}

void event_registry_free(struct event_registry *r)
{
	if (!r)
		return;
	event_processes_fini(&r->subjects);
	free(r->frames);
	counters_close(r->counters);
	free(r);
}
