/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/intake.h"

#include "proto/buffer.h"
#include "sampler/books/executed.h"
#include "sampler/books/program_run.h"
#include "sampler/books/stack_log.h"
#include "sampler/books/unprofiled.h"
#include "sampler/books/walked.h"
#include "sampler/intake/map_record.h"
#include "sampler/intake/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

struct sample {
	struct process *process;
	uint32_t slot, tid;
	bool mapped;
	uint64_t seq, size_bytes, period_bytes;
	uint32_t walked; /* the number of the stack that the target found itself; 0: none */
	struct regs regs;
	struct walk_sample stack;
	enum backend backend;
};

int intake_init(struct intake *intake, struct modules *modules, struct memory_bound *memory,
    uint64_t regs_mask, bool maps_follow)
{
	memset(intake, 0, sizeof(*intake));
	intake->modules = modules;
	intake->books.memory = memory;
	intake->arch = regs_arch_native();
	intake->regs_mask = regs_mask;
	intake->maps_follow = maps_follow;
	intake->frames = malloc(UNWIND_FRAMES_MAX * sizeof(*intake->frames));
	return intake->frames ? 0 : -ENOMEM;
}

void intake_fini(struct intake *intake)
{
	books_fini(&intake->books);
	table_fini(&intake->births);
	free(intake->frames);
	intake->frames = NULL;
}

/* Returns 0, -EEXIST if the sample is in the books already, or -ENOMEM. */
static int enter_sample(struct intake *intake, struct sample *s)
{
	struct process *process = s->process;

	s->stack.regs = &s->regs;
	s->stack.skips_innermost = true;
	s->stack.maps_follow = intake->maps_follow;
	struct walk_result walk;
	uint64_t compared[UNWIND_COUNTS] = {0};
	if (!walked_is_ours(process, s->walked))
		s->walked = 0;
	process->counters.taken += !s->walked;
	intake->taken++;
	target_see_thread(&process->target, s->tid, intake->maps_follow);
	uint32_t stack = walk_take(&process->target, &s->stack, intake->frames, 0,
	    s->walked ? compared : process->counters.outcome, &walk);
	if (s->walked) { /* the hook has counted it */
		const struct dumped_walk dumped = {
		    .walk = &walk, .number = s->walked, .stack = stack, .time_ns = s->stack.time_ns};
		return walked_dumped(process, &dumped);
	}
	if (stack == UINT32_MAX)
		return -ENOMEM;
	if (!s->mapped)
		walked_learn(process, &walk, stack, s->stack.time_ns);
	const struct heap_sample sample = {
	    .slot = s->slot,
	    .seq = s->seq,
	    .stack = stack,
	    .tid = s->tid,
	    .mapped = s->mapped,
	    .size_bytes = s->size_bytes,
	    .period_bytes = s->period_bytes,
	    .time_ns = s->stack.time_ns,
	    .backend = s->backend,
	};
	int error = heap_add(process->heap, &sample);
	if (!error)
		stack_log_block(&process->log, s->slot, s->seq, stack);
	return error;
}

/* False: the sample is in the books already. */
static bool take_sample(struct intake *intake, struct sample *s)
{
	process_look_for_room(s->process);
	int error = enter_sample(intake, s);
	process_weigh(s->process);
	if (error == -ENOMEM) {
		s->process->counters.no_room += !s->walked; /* walked samples wait for a dump */
		intake->books.memory->refused++;
	}
	return error != -EEXIST;
}

static struct program_run *find_run(const struct intake *intake, uint64_t key)
{
	struct program_run *run = books_run_of_key(&intake->books, key & ~REGION_KEY_PLACE);

	return run && program_run_is_ready(run) ? run : NULL;
}

static struct process *meet(struct intake *intake, struct program_run *run, uint32_t place)
{
	struct process *process = run ? program_run_meet(run, place, intake->modules) : NULL;

	return process && !process->target.closed ? process : NULL;
}

static void take_record_sample(struct intake *intake, const struct record *record)
{
	struct sample s = {
	    .stack = {.stack = record->stack,
	        .stack_bytes = record->stack_bytes,
	        .stack_want = record->stack_want},
	    .tid = record->tid,
	};
	/* the trigger's arguments: key, slot, seq, size, period, time */
	const uint8_t *argument = intake->arch->arguments;

	if (record->regs_abi != PERF_SAMPLE_REGS_ABI_64 ||
	    regs_from_perf(intake->arch, intake->regs_mask, record->regs, record->regs_count, &s.regs) != 0) {
		intake->bad++;
		return;
	}
	intake_prefetch(record);
	uint64_t key = s.regs.r[argument[0]];
	struct program_run *run = find_run(intake, key);
	if (!run && intake->find_runs && intake->find_runs(intake->context))
		run = find_run(intake, key);
	intake->strangers += !run;
	if (run && run->life.unchosen)
		return;
	s.process = meet(intake, run, key & REGION_KEY_PLACE);
	if (!s.process) {
		intake->bad += run != NULL;
		return;
	}
	uint64_t slot = s.regs.r[argument[1]];
	s.mapped = slot & REGION_TRIGGER_MMAP;
	slot &= ~REGION_TRIGGER_MMAP;
	s.slot = slot > UINT32_MAX ? REGION_NO_SLOT : (uint32_t)slot;
	s.seq = s.regs.r[argument[2]];
	s.size_bytes = s.regs.r[argument[3]];
	s.period_bytes = s.regs.r[argument[4]] & ((1ull << REGION_STACK_SHIFT) - 1);
	s.walked = (uint32_t)(s.regs.r[argument[4]] >> REGION_STACK_SHIFT);
	s.stack.time_ns = record->time_ns;
	s.backend = run->capture.event_backend;
	uint64_t *count =
	    s.backend == BACKEND_UPROBE ? &s.process->counters.by_uprobe : &s.process->counters.by_breakpoint;
	/* A trigger that a signal interrupts is executed, and dumped, a second time. */
	const bool first = take_sample(intake, &s);
	s.process->counters.dumps += first;
	*count += first && !s.walked;
}

/* Ignores records of processes that are not profiled: nearly all of them if the event is system-wide. */
static void take_mmap(struct intake *intake, const struct record *record)
{
	const struct process *process;
	size_t cursor, known = 0;

	/* Stacks that were copied before the record must be unwound with the old maps. They may be the first
	 * of a new process. */
	while (record->time_ns && known != intake->books.processes.count) {
		known = intake->books.processes.count;
		for (cursor = 0; (process = table_next(&intake->books.processes, record->pid, &cursor));)
			if (!process->target.closed)
				intake_buffers(intake, process->run, record->time_ns);
	}
	const struct map_range range = map_record_range(record);
	cursor = 0;
	while ((process = table_next(&intake->books.processes, record->pid, &cursor)))
		if (!process->target.closed && !process->executed.recorded)
			maps_add(process->target.maps, &range);
}

static void take_comm(const struct intake *intake, const struct record *record)
{
	struct process *process;
	size_t cursor = 0;

	while ((process = table_next(&intake->books.processes, record->pid, &cursor)))
		if (record->exec)
			executed_note(process, record->path, record->time_ns);
		else if (!process->target.closed && process->target.threads)
			threads_call(process->target.threads, record->tid, record->path);
}

void intake_record(void *context, const struct record *record)
{
	struct intake *intake = context;

	unprofiled_children_record(&intake->births, &intake->books.processes, record);
	switch (record->kind) {
	case RECORD_SAMPLE:
		take_record_sample(intake, record);
		break;
	case RECORD_MMAP:
		take_mmap(intake, record);
		break;
	case RECORD_COMM:
		take_comm(intake, record);
		break;
	case RECORD_LOST:
		intake->ring_lost += record->lost;
		break;
	default:
		break;
	}
}

/* ---- the copy backend */

enum { CLOCKS_APART_NS = 1000 * 1000000 }; /* a copy further in the future comes from a hostile target */

struct buffer_context {
	struct intake *intake;
	struct program_run *run;
	uint64_t before_ns;
	bool left;
};

/* Takes the frames that the hook itself gives for a number. If they are none, or the number is not ours,
 * nothing is lost: no sample is in this buffer. */
static bool take_frames(struct buffer_context *context, const struct region_buffer *header,
    const unsigned char *addresses, size_t room)
{
	struct intake *intake = context->intake;
	struct process *process = meet(intake, context->run, header->place);
	const size_t bytes = header->stack_bytes < room ? header->stack_bytes : room;
	const size_t count = bytes / sizeof(uint64_t);

	if (!process || !count || count > WALK_FRAMES_MAX || !walked_is_ours(process, header->sample.stack))
		return true;
	struct walk_result walk;
	struct maps *maps = walk_maps(&process->target, intake->maps_follow, header->unmaps);
	if (!maps ||
	    !walk_read_frames(maps, (const uint64_t *)(const void *)addresses, count, intake->frames, &walk))
		return true;
	process_look_for_room(process);
	if (walked_told(process, &walk, header->sample.stack, header->sample.time_ns) != 0)
		intake->books.memory->refused++; /* the samples of that number wait for another dump */
	process_weigh(process);
	return true;
}

static bool take_buffer(
    void *argument, const struct region_buffer *header, const unsigned char *stack, size_t room)
{
	struct buffer_context *context = argument;

	if (context->run->life.unchosen)
		return true;
	if (header->sample.time_ns >= context->before_ns &&
	    header->sample.time_ns - context->before_ns < CLOCKS_APART_NS) {
		context->left = true;
		return false;
	}
	struct intake *intake = context->intake;
	if (header->content == BUFFER_FRAMES)
		return take_frames(context, header, stack, room);
	struct sample s = {
	    .process = meet(intake, context->run, header->place),
	    .slot = header->sample.slot,
	    .tid = header->sample.tid,
	    .mapped = header->flags & SLOT_MMAP,
	    .seq = header->sample.seq,
	    .size_bytes = header->sample.size_bytes,
	    .period_bytes = header->sample.period_bytes,
	    .walked = header->sample.stack,
	    .stack =
	        {
	            .time_ns = header->sample.time_ns,
	            .unmaps = header->unmaps,
	            .stack = stack,
	            .stack_bytes = header->stack_bytes < room ? header->stack_bytes : room,
	            .reaches_end = header->content == BUFFER_WHOLE_STACK,
	        },
	    .backend = BACKEND_COPY,
	};
	s.stack.stack_want = s.stack.stack_bytes;
	if (!s.process || regs_from_copied(intake->arch, header->regs, &s.regs) != 0) {
		intake->bad++;
		return true;
	}
	take_sample(intake, &s);
	s.process->counters.copied += !s.walked;
	return true;
}

static void look_ahead(void *argument, const struct region_buffer *next, size_t room)
{
	const struct buffer_context *context = argument;
	uint32_t place = *(const volatile uint32_t *)&next->place;
	size_t bytes = *(const volatile uint32_t *)&next->stack_bytes;
	uint64_t sp = next->regs[context->intake->arch->copied_sp];
	const struct process *process = place < REGION_PLACES ? context->run->places.at[place] : NULL;

	if (process && !process->target.closed)
		unwind_prefetch(process->target.maps, sp, next + 1, bytes < room ? bytes : room);
}

size_t intake_buffers(struct intake *intake, struct program_run *run, uint64_t before_ns)
{
	struct buffer_context context = {.intake = intake, .run = run, .before_ns = before_ns};
	const struct region_drain drain = {.taken = take_buffer, .ahead = look_ahead, .context = &context};
	uint64_t copied = atomic_load_explicit(&region_header(run->region)->copied, memory_order_acquire);

	if (copied == run->copied_seen)
		return 0;
	size_t count = region_drain_buffers(run->region, &drain);
	if (!context.left)
		run->copied_seen = copied;
	return count;
}
