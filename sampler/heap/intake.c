/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/intake.h"

#include "sampler/target/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* DWARF numbers of the trigger's argument registers: key, slot, seq, size, period, time. */
static const uint8_t arguments_x86_64[6] = {5, 4, 1, 2, 8, 9};
static const uint8_t arguments_aarch64[6] = {0, 1, 2, 3, 4, 5};

struct sample {
	struct process *process;
	uint32_t slot, tid;
	bool mapped;
	uint64_t seq, size_bytes, period_bytes;
	struct regs regs;
	struct walk_sample stack;
	enum backend backend;
};

int intake_init(struct intake *intake, struct modules *modules, uint64_t regs_mask, bool maps_follow)
{
	memset(intake, 0, sizeof(*intake));
	intake->modules = modules;
	intake->arch = regs_arch_native();
	intake->regs_mask = regs_mask;
	intake->maps_follow = maps_follow;
	intake->frames = malloc(UNWIND_FRAMES_MAX * sizeof(*intake->frames));
	return intake->frames ? 0 : -ENOMEM;
}

void intake_fini(struct intake *intake)
{
	free(intake->frames);
	intake->frames = NULL;
}

static void take_sample(struct intake *intake, struct sample *s)
{
	struct process *process = s->process;
	s->stack.regs = &s->regs;
	s->stack.skips_innermost = true;
	s->stack.maps_follow = intake->maps_follow;
	process->counters.taken++;
	intake->taken++;
	target_see_thread(&process->target, s->tid);
	uint32_t stack = walk_take(&process->target, &s->stack, intake->frames, 0, process->counters.outcome);
	if (stack == UINT32_MAX) {
		process->counters.no_room++;
		return;
	}
	const struct heap_sample sample = {
	    .slot = s->slot,
	    .seq = s->seq,
	    .stack = stack,
	    .tid = s->tid,
	    .mapped = s->mapped,
	    .size_bytes = s->size_bytes,
	    .period_bytes = s->period_bytes,
	    .backend = s->backend,
	};
	heap_add(process->heap, &sample);
}

static struct image *find_image(const struct intake *intake, uint64_t key)
{
	for (struct image *image = intake->images; image; image = image->next)
		if (image->ready && image->region->key == (key & ~(uint64_t)0xffff))
			return image;
	return NULL;
}

static struct process *find_process(struct intake *intake, struct image *image, uint32_t place)
{
	struct process *process = image ? image_process(image, place, intake->modules) : NULL;
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
	const uint8_t *argument = intake->arch == &regs_aarch64 ? arguments_aarch64 : arguments_x86_64;
	if (record->regs_abi != PERF_SAMPLE_REGS_ABI_64 ||
	    regs_from_perf(intake->arch, intake->regs_mask, record->regs, record->regs_count, &s.regs) != 0) {
		intake->bad++;
		return;
	}
	intake_prefetch(record);
	uint64_t key = s.regs.r[argument[0]];
	struct image *image = find_image(intake, key);
	if (!image && intake->find_images && intake->find_images(intake->context))
		image = find_image(intake, key);
	s.process = find_process(intake, image, key & 0xffff);
	if (!s.process)
		return; /* another session's, or a stray: with a uprobe every user of the library is seen */
	uint64_t slot = s.regs.r[argument[1]];
	s.mapped = slot & REGION_TRIGGER_MMAP;
	slot &= ~REGION_TRIGGER_MMAP;
	s.slot = slot > UINT32_MAX ? REGION_NO_SLOT : (uint32_t)slot;
	s.seq = s.regs.r[argument[2]];
	s.size_bytes = s.regs.r[argument[3]];
	s.period_bytes = s.regs.r[argument[4]];
	s.backend = image->event_backend;
	if (s.backend == BACKEND_UPROBE)
		s.process->counters.by_uprobe++;
	else
		s.process->counters.by_breakpoint++;
	take_sample(intake, &s);
}

/* Calls `take` with every process of that pid, and the context. */
static void for_pid(struct intake *intake, uint32_t pid, void (*take)(struct process *process, const void *),
    const void *context)
{
	for (struct image *image = intake->images; image; image = image->next)
		for (uint32_t i = 0; i < image->places_end && image->live_processes; i++) {
			struct process *process = image->process[i];
			if (process && process->target.pid == (pid_t)pid && !process->target.closed)
				take(process, context);
		}
}

struct mmap_context {
	struct intake *intake;
	const struct record *record;
};

static void add_range(struct process *process, const void *argument)
{
	const struct mmap_context *context = argument;
	/* Stacks that were copied before: of what was there then. */
	if (context->record->time_ns)
		intake_buffers(context->intake, process->image, context->record->time_ns);
	maps_add_record(process->target.maps, context->record);
}

static void call_thread(struct process *process, const void *context)
{
	const struct record *record = context;
	if (process->target.threads && !record->exec)
		threads_call(process->target.threads, record->tid, record->path);
}

void intake_record(void *context, const struct record *record)
{
	struct intake *intake = context;
	switch (record->kind) {
	case RECORD_SAMPLE:
		take_record_sample(intake, record);
		break;
	case RECORD_MMAP:
		for_pid(intake, record->pid, add_range, &(const struct mmap_context){intake, record});
		break;
	case RECORD_COMM:
		for_pid(intake, record->pid, call_thread, record);
		break;
	case RECORD_LOST:
		intake->ring_lost += record->lost;
		break;
	default:
		break;
	}
}

/* ---- the copy backend */

enum { CLOCKS_APART_NS = 1000 * 1000000 }; /* a copy from the future beyond this is a hostile target's */

struct buffer_context {
	struct intake *intake;
	struct image *image;
	uint64_t before_ns;
	bool left;
};

/* Callee-saved registers, stack pointer and program counter, as the hook stores them (proto/region.h). */
static int regs_from_buffer(
    const struct regs_arch *arch, const struct region_buffer *header, struct regs *regs)
{
	static const uint8_t x86_64[] = {3, 6, 7, 12, 13, 14, 15};
	static const uint8_t aarch64[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
	const uint8_t *numbers = arch == &regs_aarch64 ? aarch64 : x86_64;
	size_t count = arch == &regs_aarch64 ? sizeof(aarch64) : sizeof(x86_64);
	uint64_t words[32], known = 0;
	for (size_t i = 0; i < count; i++) {
		words[numbers[i]] = header->regs[i];
		known |= UINT64_C(1) << numbers[i];
	}
	return regs_from_dwarf(arch, header->regs[count], known, words, 32, regs);
}

static bool take_buffer(
    void *argument, const struct region_buffer *header, const unsigned char *stack, size_t room)
{
	struct buffer_context *context = argument;
	if (header->time_ns >= context->before_ns && header->time_ns - context->before_ns < CLOCKS_APART_NS) {
		context->left = true;
		return false;
	}
	struct intake *intake = context->intake;
	struct sample s = {
	    .process = find_process(intake, context->image, header->place),
	    .slot = header->slot,
	    .tid = header->tid,
	    .mapped = header->flags & SLOT_MMAP,
	    .seq = header->seq,
	    .size_bytes = header->size_bytes,
	    .period_bytes = header->period_bytes,
	    .stack =
	        {
	            .time_ns = header->time_ns,
	            .stack = stack,
	            .stack_bytes = header->stack_bytes < room ? header->stack_bytes : room,
	            .reaches_end = header->whole_stack == 1,
	        },
	    .backend = BACKEND_COPY,
	};
	s.stack.stack_want = s.stack.stack_bytes;
	if (!s.process || regs_from_buffer(intake->arch, header, &s.regs) != 0) {
		intake->bad++;
		return true;
	}
	s.process->counters.copied++;
	take_sample(intake, &s);
	return true;
}

static void look_ahead(void *argument, const struct region_buffer *next, size_t room)
{
	const struct buffer_context *context = argument;
	uint32_t place = *(const volatile uint32_t *)&next->place;
	size_t bytes = *(const volatile uint32_t *)&next->stack_bytes;
	uint64_t sp = next->regs[context->intake->arch == &regs_aarch64 ? 12 : 2];
	const struct process *process = place < REGION_PLACES ? context->image->process[place] : NULL;
	if (process && !process->target.closed)
		unwind_prefetch(process->target.maps, sp, next + 1, bytes < room ? bytes : room);
}

size_t intake_buffers(struct intake *intake, struct image *image, uint64_t before_ns)
{
	struct buffer_context context = {.intake = intake, .image = image, .before_ns = before_ns};
	const struct region_drain drain = {.taken = take_buffer, .ahead = look_ahead, .context = &context};
	uint64_t copied = atomic_load_explicit(&region_header(image->region)->copied, memory_order_acquire);
	if (copied == image->copied_seen)
		return 0;
	size_t count = region_drain_buffers(image->region, &drain);
	if (!context.left)
		image->copied_seen = copied;
	return count;
}
