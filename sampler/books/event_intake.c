/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/event_intake.h"

#include "pprof/text/clock.h"
#include "sampler/intake/map_record.h"
#include "sampler/intake/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* a record's time is taken at most this long before it is written */
	YOUNG_NS = 1 * 1000000,
	KERNEL_FRAMES = 256, /* the kernel's own limit is 127 (kernel.perf_event_max_stack) */
};

/* An address at which nothing is mapped (struct target's code_address). */
#define CODE_UNKNOWN UINT64_MAX

int event_intake_init(struct event_intake *intake)
{
	intake->frames = malloc((KERNEL_FRAMES + UNWIND_FRAMES_MAX) * sizeof(*intake->frames));
	return intake->frames ? 0 : -ENOMEM;
}

void event_intake_fini(struct event_intake *intake)
{
	event_processes_fini(&intake->subjects);
	free(intake->frames);
	intake->frames = NULL;
}

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
    const struct event_intake *intake, struct event_process *s, const struct record *record)
{
	size_t kernel = kernel_frames(record, intake->frames);
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

	return walk_take(
	    &s->target, &sample, intake->frames, kernel, s->outcome[record->source->event], NULL);
}

/* ---- samples */

/* The size of the page that a fault added. An invalid size counts as the smallest page size. */
static uint64_t page_bytes(const struct record *record)
{
	uint64_t smallest = (uint64_t)sysconf(_SC_PAGESIZE), bytes = record->data_page_bytes;
	bool sane = bytes >= smallest && bytes <= UINT64_C(1) << 34 && (bytes & (bytes - 1)) == 0;

	return sane ? bytes : smallest;
}

static struct event_process *subject_of(struct event_intake *intake, const struct record *record)
{
	struct event_process *s = event_processes_find(&intake->subjects, (pid_t)record->pid);

	if (!s) {
		/* The FORK record was lost, or arrives after the sample. */
		s = event_processes_add(&intake->subjects, (pid_t)record->pid, NULL, record->time_ns);
		if (s)
			target_read_maps(&s->target, clock_now_ns(), 0);
	}
	if (s)
		event_process_look(s);
	return s;
}

static void take_sample(struct event_intake *intake, const struct record *record)
{
	uint32_t number = record->source->event;

	if (number >= intake->event_count)
		return;
	const struct event *event = &intake->events[number];
	struct event_process *s = subject_of(intake, record);
	struct event_row row = {.samples = 1,
	    .value = event->hz ? record->period : event->period,
	    .tid = intake->by_thread ? record->tid : 0};
	row.bytes = event->kind == EVENT_FAULT ? row.value * page_bytes(record) : 0;
	intake->taken++;
	event_row_add(&intake->sum[number], &row);
	if (!s)
		return;
	if (!event_process_has_samples(s)) {
		intake->sampled++;
		intake->first_sample(intake->context, s);
	}
	if (!s->books[number])
		s->books[number] = event_book_new();
	if (intake->by_thread && !s->target.threads)
		s->target.threads = threads_new();
	target_see_thread(&s->target, record->tid, true);
	event_process_look_for_room(s, intake->subjects.memory);
	row.stack = take_stack(intake, s, record);
	if (row.stack == UINT32_MAX || !s->books[number] || !event_book_add(s->books[number], &row)) {
		s->no_room++;
		intake->subjects.memory->refused++;
	}
	event_process_weigh(s, intake->subjects.memory);
}

/* ---- processes */

static void take_fork(struct event_intake *intake, const struct record *record)
{
	counters_note_fork(intake->counters, record);
	if (record->pid == record->parent_pid)
		return;
	const struct event_process *parent =
	    event_processes_find(&intake->subjects, (pid_t)record->parent_pid);
	struct event_process *s = event_processes_find(&intake->subjects, (pid_t)record->pid);
	if (s && s->target.start_ns >= record->time_ns)
		return; /* a sample of the process arrived first */
	if (s)
		intake->replaced(intake->context, s, TARGET_GONE); /* its EXIT record was lost */
	event_processes_add(&intake->subjects, (pid_t)record->pid, parent, record->time_ns);
}

static void take_comm(struct event_intake *intake, const struct record *record)
{
	struct event_process *s = event_processes_find(&intake->subjects, (pid_t)record->pid);

	if (!record->exec) {
		if (s && s->target.threads)
			threads_call(s->target.threads, record->tid, record->path);
		return;
	}
	if (s && s->target.start_ns < record->time_ns) {
		intake->replaced(intake->context, s, TARGET_EXEC);
		s = NULL;
	}
	if (!s)
		s = event_processes_add(&intake->subjects, (pid_t)record->pid, NULL, record->time_ns);
	if (!s)
		return;
	strncpy(s->comm, record->path, sizeof(s->comm) - 1);
	/* By now the process may execute yet another program. Its maps in /proc are used only after a record
	 * has told where the executable is, which the kernel maps first, and only if the executable is
	 * mapped there. */
	s->target.code_address = CODE_UNKNOWN;
}

static void take_mmap(struct event_intake *intake, const struct record *record)
{
	struct event_process *s = event_processes_find(&intake->subjects, (pid_t)record->pid);
	const struct map_range range = map_record_range(record);

	if (!s)
		return;
	maps_add(s->target.maps, &range);
	if (s->target.code_address == CODE_UNKNOWN && record->path[0] == '/')
		s->target.code_address = record->start;
}

static void take_record(void *context, const struct record *record)
{
	struct event_intake *intake = context;
	struct event_process *s;

	switch (record->kind) {
	case RECORD_SAMPLE:
		if (record->source)
			take_sample(intake, record);
		else
			intake->bad++;
		break;
	case RECORD_MMAP:
		take_mmap(intake, record);
		break;
	case RECORD_COMM:
		take_comm(intake, record);
		break;
	case RECORD_FORK:
		take_fork(intake, record);
		break;
	case RECORD_EXIT:
		s = event_processes_find(&intake->subjects, (pid_t)record->pid);
		if (s)
			s->exits = true;
		break;
	case RECORD_LOST:
		intake->ring_lost += record->lost;
		break;
	case RECORD_THROTTLE:
		if (record->source && record->source->event < intake->event_count)
			intake->throttled[record->source->event]++;
		break;
	default:
		break;
	}
}

size_t event_intake_drain(struct event_intake *intake, bool everything)
{
	uint64_t before = intake->taken;

	rings_drain_events(counters_rings(intake->counters), counters_layouts(intake->counters),
	    everything ? UINT64_MAX : clock_now_ns() - YOUNG_NS, take_record, intake, &intake->bad);
	return intake->taken - before;
}
