/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a sample's registers and stack bytes to the number of a stack: unwinds, reads the maps again if the
 * result suggests it, counts the outcome, and interns the stack.
 */
#ifndef SAMPLER_INTAKE_WALK_H
#define SAMPLER_INTAKE_WALK_H

#include "sampler/intake/target.h"
#include "sampler/unwind/unwind.h"

struct walk_sample {
	const struct regs *regs; /* NULL: user registers unknown */
	const void *stack;       /* a copy of what was at the stack pointer */
	size_t stack_bytes, stack_want;
	bool reaches_end;     /* the copy holds the whole stack */
	bool skips_innermost; /* leave out the preloaded library's frames, innermost */
	/* New mappings are reported by records of the kernel; otherwise the maps are read again from time to
	 * time. */
	bool maps_follow;
	uint64_t time_ns; /* when the sample was taken */
	uint64_t unmaps;  /* the process' count then (struct target_past), unless maps_follow */
};

/* The frames of a walk. The preloaded library's come first, and are not part of the stack. */
struct walk_result {
	const struct unwind_frame *frames; /* as unwind_stack() left them; in the caller's array */
	size_t count;
	enum unwind_outcome outcome;
	struct maps *maps; /* the maps that were used; valid until the next walk */
	size_t go_switch;  /* the frame of Go's asmcgocall, whose callers are on another stack; 0: none is */
};

/* Unwinds a sample and interns its stack. The first `before` frames are the caller's, innermost first: the
 * kernel's. `frames` has room for UNWIND_FRAMES_MAX more. outcomes: counts of this target's samples.
 * result may be NULL. Returns the stack's number in target->stacks, or UINT32_MAX if memory is short. */
uint32_t walk_take(struct target *target, const struct walk_sample *sample, struct unwind_frame *frames,
    size_t before, uint64_t outcomes[UNWIND_COUNTS], struct walk_result *result);

/* Reads the frames of a stack that the target has walked itself: `count` return addresses, innermost
 * first, which may change during the reading. `frames` has room for them. False if a frame is in no file
 * and in no code that is known by its bytes. */
bool walk_read_frames(struct maps *maps, const uint64_t *addresses, size_t count, struct unwind_frame *frames,
    struct walk_result *result);

/* The maps of the target at that time, for walk_read_frames(): see struct walk_sample. NULL if memory is
 * short. */
struct maps *walk_maps(struct target *target, bool maps_follow, uint64_t unmaps);

/* The stack's number in target->stacks, or UINT32_MAX if memory is short. */
uint32_t walk_intern(const struct target *target, const struct walk_result *result);

#endif
