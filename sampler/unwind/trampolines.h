/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that an interpreter copies for each function that it runs, so that the function has an address of its
 * own, and a name in the perf map. It has no unwind rows, and mostly keeps no frame pointer. But each copy
 * has the same few instructions, so a frame in a copy is known exactly.
 *
 *	CPython 3.12 and 3.13 with -X perf:	sub $8,%rsp; call *%rcx; add $8,%rsp; ret
 *	CPython, later, also by frame pointer:	push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret
 *	both on aarch64:	stp x29,x30,[sp,-16]!; mov x29,sp; blr x3; ldp x29,x30,[sp],16; ret
 *
 * (CPython's source: Python/asm_trampoline.S.) Copies lie in arenas of 64 KiB. An arena is filled before it
 * may be executed, and is not written again. So each range of such memory is searched once, and the places of
 * the copies are kept as runs: FIRST + n * STRIDE is a return address.
 */
#ifndef SAMPLER_UNWIND_TRAMPOLINES_H
#define SAMPLER_UNWIND_TRAMPOLINES_H

#include "sampler/unwind/cfi.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	TRAMPOLINES_RUNS_MAX = 64,         /* in a range; an arena is one run */
	TRAMPOLINES_BYTES_MAX = 4 << 20,   /* read from the beginning of a range */
	TRAMPOLINES_READ_COST = 512 << 10, /* units of work (cfi.h): 1 to 2 ms, mostly for a fork */
};

struct trampolines_run {
	uint32_t first;  /* the first return address, from the range's start */
	uint32_t stride; /* bytes */
	uint32_t count;
	uint32_t kind; /* which code it is; see trampolines.c */
};

/* The copies in one range. Counts references, for one thread. */
struct trampolines;

/* Finds copies in a range that begins with CODE, for machine E_MACHINE. Returns the number of runs. Pure. */
size_t trampolines_find(uint16_t e_machine, const uint8_t *code, size_t code_bytes,
    struct trampolines_run runs[TRAMPOLINES_RUNS_MAX]);

/* A range at START with these runs. NULL if out of memory. */
struct trampolines *trampolines_new(uint64_t start, const struct trampolines_run *runs, size_t count);

/* The copies in a range of a process' memory, which a child reads (memory_reader.h). A range that cannot be
 * read has none. NULL if it cannot be said now. */
struct trampolines *trampolines_read(pid_t pid, uint64_t start, uint64_t end);

struct trampolines *trampolines_ref(struct trampolines *trampolines);
void trampolines_unref(struct trampolines *trampolines); /* NULL is allowed */
size_t trampolines_bytes(const struct trampolines *trampolines);

/* The rule for a frame in a copy. ADDRESS is its return address less 1, as unwind.c looks it up. cfi_no_rule
 * if there is no copy. */
const struct cfi_rule *trampolines_rule(
    const struct trampolines *trampolines, uint64_t address, uint16_t e_machine);

#endif
