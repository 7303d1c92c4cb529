/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/slow_path.h"

#include "preload/attach.h"
#include "preload/block.h"
#include "preload/capture.h"
#include "preload/claim.h"
#include "preload/request.h"
#include "preload/sample_clock.h"
#include "preload/thread.h"
#include "preload/walk.h"
#include "preload/weigh.h"

#define COLD __attribute__((noinline, cold))

/* The period in force. What is watched is read first: if the period changes in between, the next allocation
 * comes by again. */
static uint64_t watch_period(struct region_header *header)
{
	const uint32_t watch = atomic_load(&header->watch) % REGION_WATCHES;

	sample_watch(&header->extra_bytes[watch]);
	return atomic_load(&header->period_bytes);
}

/* No sampler yet: the interval that is under way when one comes is as good as a new one, the exponential
 * distribution is memoryless. */
COLD static void pass_by(size_t size)
{
	if (!sample_thread.period_bytes)
		thread_first_event();
	sample_decide(size, watch_period(place_header()), true);
}

COLD static bool attach_first(void)
{
	return claim_state() == CLAIM_EARLY && attach_early() && claim_ready();
}

bool slow_path_ready(void)
{
	sample_enter();
	const bool ready = claim_ready() || attach_first();
	sample_leave();
	return ready;
}

bool slow_path_decide(size_t size, struct region_sample *sample)
{
	if (!slow_path_ready()) {
		if (claim_state() == CLAIM_OFFERED) {
			pass_by(size);
			return false;
		}
		/* Take the slow path again as long as there may be a session; once there is none, never
		 * again. The end of an interval is lost; without a new one the next block, which does take
		 * that path, would be a sample for certain. */
		sample_stop(claim_state() == CLAIM_CLOSED);
		return false;
	}
	struct region_header *header = place_header();
	if (!sample_thread.period_bytes)
		thread_first_event();
	const bool off = atomic_load_explicit(&header->mode, memory_order_relaxed) == REGION_MODE_OFF ||
	    request_paused() || sample_thread.inner;
	sample_thread.inner = 0;
	uint64_t period_bytes = sample_decide(size, watch_period(header), off);
	if (!period_bytes)
		return false;
	sample->size_bytes = size;
	sample->period_bytes = period_bytes & REGION_SAMPLE_PERIOD_MASK;
	sample->time_ns = sample_clock_read_ns();
	sample->tid = sample_thread.tid;
	return true;
}

/* The caller's frame, as it will be when the function that uses this macro has returned. That has a frame
 * pointer because this asks for it, and what its caller had is the word there on both architectures. */
#define CALLER(start)                                              \
	((start) = (struct walk_start){                            \
	     .pc = (uintptr_t)__builtin_return_address(0),         \
	     .sp = (uintptr_t)__builtin_dwarf_cfa(),               \
	     .fp = *(const uintptr_t *)__builtin_frame_address(0), \
	 })

/* A block that has been decided to be a sample, with the stack from the caller's caller on. */
static inline __attribute__((always_inline)) void enter(
    const void *pointer, struct live_entry *entry, struct walk_start caller)
{
	const struct walk_found found = walk_stack(caller);

	entry->sample.stack = found.number & REGION_SAMPLE_STACK_MASK;
	/* Before the block is in use: who looks in between must not see more in use than was allocated. */
	if (found.number)
		walk_count(
		    found.number, weigh(entry->sample.size_bytes, UINT64_MAX, entry->sample.period_bytes));
	block_insert(pointer, entry);
	if (found.asked) {
		/* No dump has all of a stack that goes on in a goroutine's stack. */
		const bool told =
		    found.switched ? capture_walked(entry, caller) : capture_sample(entry, &caller);
		if (!told)
			walk_not_dumped(found.number);
	} else if (!found.number || (!found.switched && walk_is_compared())) {
		(void)capture_sample(entry, NULL);
	}
}

void slow_path_alloc(const void *pointer, size_t size)
{
	struct live_entry entry = {.flags = 0};
	struct walk_start caller;

	sample_enter();
	if (slow_path_decide(size, &entry.sample)) {
		CALLER(caller);
		enter(pointer, &entry, caller);
	}
	sample_leave();
}

void *slow_path_malloc(size_t size, void *(*next)(size_t size))
{
	struct live_entry entry = {.flags = 0};
	struct walk_start caller;

	sample_enter();
	const bool chosen = slow_path_decide(size, &entry.sample);
	sample_leave();
	void *pointer = next(size);
	if (!chosen || !pointer)
		return pointer;
	/* Ready no more: another thread has detached meanwhile, or a signal handler has set a limit; or it
	 * has forked, and this is the child, which must have a place of its own. */
	sample_enter();
	if (slow_path_ready()) {
		CALLER(caller);
		enter(pointer, &entry, caller);
	}
	sample_leave();
	return pointer;
}

bool slow_path_take(const void *pointer, struct live_entry *entry)
{
	sample_enter();
	slow_path_ready(); /* first: in a forked child this gives entries their new slots */
	const bool taken = live_take(pointer, entry);
	sample_leave();
	return taken;
}

void slow_path_free(const void *pointer)
{
	struct live_entry entry;

	if (live_maybe_here(pointer) && slow_path_take(pointer, &entry))
		block_remove(&entry);
}
