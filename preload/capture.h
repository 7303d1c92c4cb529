/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets a sample's registers and stack to the sampler.
 *
 * Trigger: capture_trigger is an empty function with the sample's description in its argument registers. The
 * sampler has put a uprobe or an execution breakpoint on it, and the kernel dumps registers and user stack
 * into a perf ring (as many bytes as ring_dump_bytes() says, sampler/perf/ring.h). It dumps only pages that
 * are present, so the hook reads a byte of each first, within the same bounds as a copy.
 *
 * Copy backend: the hook writes the registers and [sp, end of the stack) into a buffer of the shared region.
 * Used when perf is refused, before the sampler has opened its events, for stacks deeper than perf's dump,
 * and for as long as there are buffers at small periods (header.copy_period_bytes) and while many dumps wait
 * in the rings (header.dumps_most): a trap costs several times what a copy does. The end of the stack must be
 * known (thread.h): one byte too many would crash the program. On a stack with unknown bounds (a signal
 * stack, a coroutine's) the copy stops at the end of sp's page, which is mapped as a whole.
 *
 * Walked samples are copied only while half of the buffers of that size are free: others have no other way.
 * If the number of such a stack is new, its return addresses are written into a small buffer instead.
 */
#ifndef PRELOAD_CAPTURE_H
#define PRELOAD_CAPTURE_H

#include "preload/live.h"
#include "preload/walk.h"

#include <stdbool.h>
#include <stdint.h>

/* False: it is certain that the stack does not arrive, which is counted unless the sample was walked. (A dump
 * by the kernel may be lost unnoticed.) `walked`: where the walk began, if nobody knows the stack's number
 * yet; else NULL. */
bool capture_sample(const struct live_entry *entry, const struct walk_start *walked);

/* Tells the sampler the return addresses of a walked stack, without registers and stack. False: there was no
 * buffer, or the rows have changed since the walk. */
bool capture_walked(const struct live_entry *entry, struct walk_start walked);

/* Where a breakpoint is to be set; the sampler is told. */
uintptr_t capture_breakpoint(void);

#endif
