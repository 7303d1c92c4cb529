/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow path of every hook: what happens when an interval has ended, and when a block that may be a sample
 * is freed. The first event of a process comes here too, and attaches it to its session.
 */
#ifndef PRELOAD_SLOW_PATH_H
#define PRELOAD_SLOW_PATH_H

#include "preload/live.h"
#include "preload/sample.h"

#include <stdbool.h>
#include <stddef.h>

/* True when samples can be taken. Attaches a process that has just started; claims a forked child's place. */
bool slow_path_ready(void);

/* After sample_count returned true: decides whether the allocation is a sample. If so, fills in size, period,
 * time and thread of *sample. An inner call (sample_thread) is none; but the next is one again. */
bool slow_path_decide(size_t size, struct region_sample *sample);

/* After an allocation for which sample_count returned true. */
void slow_path_alloc(const void *pointer, size_t size);

/* malloc by `next`, after sample_count returned true. The decision comes first, and stands whether the call
 * fails, is left by a jump, or is interrupted by a signal handler that allocates. If there is no block, there
 * is no sample, and the interval that has ended is not put back: all that is known of it then is that it is
 * shorter than the block, and a second attempt would be a sample for certain. A call that fails before an
 * interval ends has consumed its bytes, which leaves the rest distributed as any interval is. */
void *slow_path_malloc(size_t size, void *(*next)(size_t size));

/* For functions that may allocate by calling another hook, and that may throw. Counts after the call, and
 * only if the call has not counted anything itself. The random generator's state shows it, since it changes
 * with every interval drawn, also when two intervals are equal (at period 1 all are 0). If a new_handler
 * allocates, this one block is missed. */
struct slow_path_mark {
	uint64_t left_bytes, random;
};

/* Before the call. */
static inline struct slow_path_mark slow_path_mark(void)
{
	return (struct slow_path_mark){sample_thread.left_bytes, sample_thread.random};
}

/* After it; pointer: not NULL. */
static inline void slow_path_after(struct slow_path_mark mark, const void *pointer, size_t size)
{
	if (sample_thread.left_bytes == mark.left_bytes && sample_thread.random == mark.random &&
	    __builtin_expect(sample_count(size), 0))
		slow_path_alloc(pointer, size);
}

/* Takes a block out of the index, if it is there, before it is freed; block_remove or block_restore follow.
 */
bool slow_path_take(const void *pointer, struct live_entry *entry);

/* Before a block is freed for which live_maybe returned true: removes it if it is a sampled block. */
void slow_path_free(const void *pointer);

#endif
