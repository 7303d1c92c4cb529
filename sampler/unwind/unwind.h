/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding: registers, a copy of the stack and the maps in; return addresses and the reason for stopping
 * out.
 *
 * Makes no system call except to open and read a module when it is first seen, to read the code in front
 * of a return address that is found by frame pointer for the first time, and to look once for known code in
 * memory that is in no file (trampolines.h); keeps no state except caches and the process' budget for new
 * rows (cfi.h): within it, the same input gives the same frames.
 * Everything in the input may be hostile.
 *
 * Each frame costs one lookup pc -> row (cfi.h) and a few loads from the dump. The caller of a frame is
 *	CFA = register + offset;  pc = *(CFA + ra_offset);  sp = CFA;  saved registers = *(CFA + offset)
 * and code without unwind rows (JIT, assembly) is stepped over by its frame pointer. That is a guess, and
 * such a frame says so (UNWIND_STEP_FP): it is believed only if the return address follows a call
 * instruction; or, in code whose bytes cannot be read (JIT), if the frame pointer that was saved with it
 * leads on up the stack, or if the code that it returns from was made at run time as well.
 *
 * How a walk ended is known exactly, see enum unwind_outcome. Every outcome but UNWIND_COMPLETE should be
 * shown in the profile, by unwind_marker(), as the outermost frame.
 */
#ifndef SAMPLER_UNWIND_UNWIND_H
#define SAMPLER_UNWIND_UNWIND_H

#include "sampler/linux/regs.h"
#include "sampler/unwind/maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unwind_outcome {
	UNWIND_COMPLETE, /* the rows say that there is no caller, or the return address is zero */
	/* code without unwind rows, and a frame pointer of zero or to zeros, as start-up code has it */
	UNWIND_END_GUESSED,
	UNWIND_TRUNCATED,    /* the walk needs bytes above the dump, and the dump was cut there */
	UNWIND_STACK_SWITCH, /* the caller's frame is on another stack (sigaltstack, coroutine, fiber) */
	UNWIND_BAD_READ,     /* a needed word is where no valid frame has it: below sp, or on no stack */
	/* unwind information that is invalid, or needs an unknown register */
	UNWIND_BAD_ROW,
	UNWIND_LOOP,   /* no progress: the caller's frame is not above this one */
	UNWIND_NO_MAP, /* the return address is in no executable mapping */
	/* the code is in a file that could not be read, and its frame pointer leads nowhere */
	UNWIND_NO_MODULE,
	UNWIND_NO_CFI,   /* code without unwind rows, and its frame pointer leads nowhere */
	UNWIND_TOO_DEEP, /* more frames than the caller's buffer holds */
	/* as UNWIND_NO_CFI, but there may be rows: they could not be read, or are too much work or memory */
	UNWIND_UNREAD_CFI,
	/* the walk needs bytes above the dump, and the dump ends before what was wanted: the kernel copies
	 * only pages that are present; this one was never written, swapped out, or is none of the stack's */
	UNWIND_NOT_PRESENT,
	UNWIND_OUTCOMES,
	/* No outcome, but counted, named and marked as one: frames on the way were found by frame pointer. */
	UNWIND_GUESSED = UNWIND_OUTCOMES,
	UNWIND_COUNTS,
};

enum { UNWIND_FRAMES_MAX = 65536 };

/* How a frame was found; for statistics and tests. */
enum unwind_step {
	UNWIND_STEP_FIRST, /* the sample's own program counter */
	UNWIND_STEP_CFI,
	UNWIND_STEP_FP, /* by frame pointer, out of code without rows: a guess */
};

struct unwind_frame {
	uint64_t pc;    /* absolute address to look up: already return address - 1 where it is one */
	uint64_t vaddr; /* the same in the terms of module's ELF file; pc itself if module is NULL */
	/* borrowed from the maps, take a reference to keep it; NULL: no file (JIT, unknown) */
	struct module *module;
	uint8_t kind;    /* enum map_kind of where pc is; MAP_KIND_SPECIAL if it is in no map */
	uint8_t step;    /* enum unwind_step */
	bool activation; /* pc is exact: the first frame, or one that a signal interrupted */
	uint32_t tag;    /* the number given to unwind_remember(); 0: none, or forgotten */
};

_Static_assert(sizeof(struct unwind_frame) == 32, "two frames in a cache line");

struct unwind_input {
	const struct regs_arch *arch;
	const struct regs *regs; /* of the innermost frame */
	struct maps *maps;
	uint64_t stack_address; /* address of the dump's first byte; usually the stack pointer */
	const void *stack;      /* the dump; need not be aligned */
	size_t stack_bytes;     /* valid bytes (perf: dyn_size) */
	/* bytes that were asked for (perf: size); a shorter dump ends where a page is not present, at the
	 * stack's end or before it */
	size_t stack_want;
	bool reaches_end; /* the dump is known to reach the stack's end, whatever its size */
};

/*
 * Unwinds INPUT into FRAMES, innermost first, at most MAX of them; *COUNT is their number, at least one (the
 * sample's own pc) if MAX > 0.
 */
enum unwind_outcome unwind_stack(
    const struct unwind_input *input, struct unwind_frame *frames, size_t max, size_t *count);

/* Prefetches what the walk of this stack will read if it resembles the last one. Does not read the bytes:
 * they may be changing. */
void unwind_prefetch(struct maps *maps, uint64_t stack_address, const void *stack, size_t stack_bytes);

/*
 * Sets the tag of later frames at FRAME's pc, as long as MAPS do not change and there is room. So a caller
 * that numbers frames need not look up each one again.
 */
void unwind_remember(struct maps *maps, const struct unwind_frame *frame, uint32_t tag);

/* For counters and comments in the profile: "complete", "truncated", "stack switched", ... */
const char *unwind_outcome_name(enum unwind_outcome outcome);

/* The marker frame: "[truncated]", ...; NULL for UNWIND_COMPLETE. UNWIND_GUESSED's goes between the frame
 * that has no rows and the first that was found by frame pointer. */
const char *unwind_marker(enum unwind_outcome outcome);

/* Is it possible that the walk ended because a library was loaded after the maps were read? Rare, and only if
 * no record has reported it. */
bool unwind_wants_maps(enum unwind_outcome outcome);

#endif
