/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a sample's registers and stack bytes to the number of a stack: unwinds, reads the maps again if the
 * result suggests it, counts the outcome, and interns the stack.
 */
#ifndef SAMPLER_TARGET_WALK_H
#define SAMPLER_TARGET_WALK_H

#include "sampler/target/target.h"
#include "sampler/unwind/unwind.h"

struct walk_sample {
	const struct regs *regs; /* NULL: user registers unknown */
	const void *stack;       /* a copy of what was at the stack pointer */
	size_t stack_bytes, stack_want;
	bool reaches_end;     /* the copy holds the whole stack */
	bool skips_innermost; /* leave out the innermost frames of one module: the preloaded library's own */
	/* New mappings are reported by records of the kernel; otherwise the maps are read again from time to
	 * time. */
	bool maps_follow;
	uint64_t time_ns; /* when the sample was taken */
	uint64_t unmaps;  /* likewise (struct target_past), unless maps_follow */
};

/* The frames of a walk: those of the preloaded library first, and these left out of the stack. */
struct walk_result {
	const struct unwind_frame *frames; /* as unwind_stack() left them; in the caller's array */
	size_t count;
	enum unwind_outcome outcome;
	struct maps *maps; /* by which they were found; valid until the next walk */
};

/* The frames that the caller has put before the program's, innermost first: the kernel's. `frames` has room
 * for UNWIND_FRAMES_MAX more. outcomes: counts of this target's samples. result: may be NULL.
 * Returns the stack's number in target->stacks, or UINT32_MAX when there is no memory for it. */
uint32_t walk_take(struct target *target, const struct walk_sample *sample, struct unwind_frame *frames,
    size_t before, uint64_t outcomes[UNWIND_COUNTS], struct walk_result *result);

/* The frames of a stack that the target has walked itself: `count` return addresses, innermost first, which
 * may change while they are read; `frames` has room for them. False: one is in no file, and in no code that
 * is known by its bytes. */
bool walk_read_frames(struct maps *maps, const uint64_t *addresses, size_t count, struct unwind_frame *frames,
    struct walk_result *result);

/* What the target had mapped then, for walk_read_frames(): see struct walk_sample. NULL: out of memory. */
struct maps *walk_maps(struct target *target, bool maps_follow, uint64_t unmaps);

/* Its number in target->stacks, or UINT32_MAX. */
uint32_t walk_intern(const struct target *target, const struct walk_result *result);

#endif
