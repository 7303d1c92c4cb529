/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding: registers, a copy of the stack and the maps in; return addresses and the reason for stopping
 * out.
 *
 * System calls are made only to open and read a new module, to read the code in front of a new return address
 * that was found by frame pointer, and to look once for known code in memory without a file (trampolines.h).
 * The only state is caches and the process' budget for new rows (cfi.h): within the budget, the same
 * input gives the same frames. Everything in the input may be hostile.
 *
 * Each frame costs one lookup pc -> row (cfi.h) and a few loads from the dump. The caller of a frame is
 *	CFA = register + offset;  pc = *(CFA + ra_offset);  sp = CFA;  saved registers = *(CFA + offset)
 * Code without unwind rows (JIT, assembly) is stepped over by its frame pointer. That is a guess, and the
 * frame says so (UNWIND_STEP_FP). A guess is believed only if the return address follows a call instruction.
 * If the bytes there cannot be read (JIT), it is believed if the frame pointer that was saved with it leads
 * on up the stack, or if the code that it returns from was made at run time, too.
 *
 * How the unwinding ended is known exactly, see enum unwind_outcome. Every outcome but UNWIND_COMPLETE should
 * be shown in the profile, by unwind_marker(), as the outermost frame.
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
	UNWIND_TRUNCATED,    /* bytes above the dump are needed, and the dump was cut there */
	UNWIND_STACK_SWITCH, /* the caller's frame is on another stack (sigaltstack, coroutine, fiber) */
	UNWIND_BAD_READ,     /* a needed word is where no valid frame has one: below sp, or on no stack */
	/* unwind information that is invalid, or needs an unknown register */
	UNWIND_BAD_ROW,
	UNWIND_LOOP,   /* no progress: the caller's frame is not above this one */
	UNWIND_NO_MAP, /* the return address is in no executable mapping */
	/* the code is in a file that could not be read, and its frame pointer leads nowhere */
	UNWIND_NO_MODULE,
	UNWIND_NO_CFI,   /* code without unwind rows, and its frame pointer leads nowhere */
	UNWIND_TOO_DEEP, /* there are more frames than the caller's buffer holds */
	/* like UNWIND_NO_CFI, but there may be rows: they could not be read, or need too much work or
	 * memory */
	UNWIND_UNREAD_CFI,
	/* bytes above the dump are needed, and the dump is shorter than was asked for: the kernel copies
	 * only pages that are present. The missing page was never written, is swapped out, or is not the
	 * stack's */
	UNWIND_NOT_PRESENT,
	UNWIND_OUTCOMES,
	/* Not an outcome, but counted, named and marked like one: some frames were found by frame pointer. */
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
	/* borrowed from the maps: take a reference to keep it; NULL: no file (JIT, unknown) */
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
	/* bytes that were asked for (perf: size); a shorter dump ends at a missing page, at the stack's end
	 * or before it */
	size_t stack_want;
	bool reaches_end; /* the dump is known to reach the stack's end, whatever its size */
};

/*
 * Unwinds INPUT into FRAMES, innermost first, at most MAX frames. *COUNT is their number: at least one (the
 * sample's own pc) if MAX > 0.
 */
enum unwind_outcome unwind_stack(
    const struct unwind_input *input, struct unwind_frame *frames, size_t max, size_t *count);

/* Prefetches what unwinding this stack will read if it resembles the last one. Does not read the bytes: they
 * may be changing. */
void unwind_prefetch(struct maps *maps, uint64_t stack_address, const void *stack, size_t stack_bytes);

/*
 * Sets the tag of later frames at FRAME's pc, as long as MAPS do not change and there is room. So a caller
 * that numbers frames need not look up each frame again.
 */
void unwind_remember(struct maps *maps, const struct unwind_frame *frame, uint32_t tag);

/* For counters and comments in the profile: "complete", "truncated", "stack switched", ... */
const char *unwind_outcome_name(enum unwind_outcome outcome);

/* The marker frame: "[truncated]", ...; NULL for UNWIND_COMPLETE. The marker of UNWIND_GUESSED goes between
 * the frame without rows and the first frame that was found by frame pointer. */
const char *unwind_marker(enum unwind_outcome outcome);

/* Can it be that the unwinding ended because a library was loaded after the maps were read? Rare: only if no
 * record has reported the library. */
bool unwind_wants_maps(enum unwind_outcome outcome);

#endif
