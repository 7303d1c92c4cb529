/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow path of every hook: what happens when an interval has ended, and when a block that may be a sample
 * is freed. The first event of a process comes here too, and attaches it to its session.
 */
#ifndef PRELOAD_SAMPLED_H
#define PRELOAD_SAMPLED_H

#include "preload/live.h"
#include "preload/sample.h"

#include <stdbool.h>
#include <stddef.h>

/* True when samples can be taken. Attaches a process that has just started; claims a forked child's place. */
bool sampled_ready(void);

/* After sample_count returned true: decides whether the allocation is a sample. If so, fills in size, period,
 * time and thread of *sample. An inner call (sample_thread) is none; but the next is one again. */
bool sampled_decide(size_t size, struct region_sample *sample);

/* After an allocation for which sample_count returned true. */
void sampled_alloc(const void *pointer, size_t size);

/* malloc by `next`, after sample_count returned true. The decision comes first, and stands whether the call
 * fails, is left by a jump, or is interrupted by a signal handler that allocates. If there is no block, there
 * is no sample, and the interval that has ended is not put back: all that is known of it then is that it is
 * shorter than the block, and a second attempt would be a sample for certain. A call that fails before an
 * interval ends has consumed its bytes, which leaves the rest distributed as any interval is. */
void *sampled_malloc(size_t size, void *(*next)(size_t size));

/* For functions that may allocate by calling another hook, and that may throw. Counts after the call, and
 * only if the call has not counted anything itself. The random generator's state shows it, since it changes
 * with every interval drawn, also when two intervals are equal (at period 1 all are 0). If a new_handler
 * allocates, this one block is missed. */
struct sampled_mark {
	uint64_t left_bytes, random;
};

/* Before the call. */
static inline struct sampled_mark sampled_mark(void)
{
	return (struct sampled_mark){sample_thread.left_bytes, sample_thread.random};
}

/* After it; pointer: not NULL. */
static inline void sampled_after(struct sampled_mark mark, const void *pointer, size_t size)
{
	if (sample_thread.left_bytes == mark.left_bytes && sample_thread.random == mark.random &&
	    __builtin_expect(sample_count(size), 0))
		sampled_alloc(pointer, size);
}

/* Takes a block out of the index, if it is there, before it is freed; block_remove or block_restore follow.
 */
bool sampled_take(const void *pointer, struct live_entry *entry);

/* Before a block is freed for which live_maybe returned true: removes it if it is a sampled block. */
void sampled_free(const void *pointer);

#endif
