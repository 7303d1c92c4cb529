/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a copy of the stack and of the registers of this very process in passing, and unwinds it. */
#ifndef TESTS_UNIT_UNWIND_SCENE_H
#define TESTS_UNIT_UNWIND_SCENE_H

#include "sampler/unwind/unwind.h"

#include <execinfo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define NOINLINE __attribute__((noinline))
/* Keeps a call from becoming a jump. */
#define STAY     __asm__ volatile("" ::: "memory")

enum { STACK_MAX = 1 << 20, FRAMES = 8192 };

static struct modules *store;
static struct maps *maps;

static struct {
	struct regs regs;
	size_t stack_bytes;
	bool cut;
	/* backtrace(): return addresses, the first in the function that captures */
	void *truth[FRAMES];
	int n_truth;
} taken;
static char stack_copy[STACK_MAX] __attribute__((aligned(8)));
static struct unwind_frame frames[FRAMES];
static size_t n_frames;

/* End of the mapping that holds ADDRESS. */
static inline uint64_t stack_end(uint64_t address)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	uint64_t end = 0;

	while (getline(&line, &room, file) > 0) {
		struct map_range range;

		if (maps_parse_line(line, &range) && address >= range.start &&
		    address < range.start + range.len)
			end = range.start + range.len;
	}
	free(line);
	fclose(file);
	return end;
}

#ifdef __x86_64__
#define REGISTERS_NOW(words, pc)                                                                         \
	__asm__ volatile(                                                                                \
	    "mov %%rbx,24(%1); mov %%rbp,48(%1); mov %%rsp,56(%1); mov %%r12,96(%1); mov %%r13,104(%1);" \
	    "mov %%r14,112(%1); mov %%r15,120(%1); lea 0f(%%rip),%0; 0:"                                 \
	    : "=&r"(pc)                                                                                  \
	    : "r"(words)                                                                                 \
	    : "memory")
static const uint64_t registers_taken = 1 << 3 | 1 << 6 | 1 << 7 | 0xf << 12;
#else
#define REGISTERS_NOW(words, pc)                                                                          \
	__asm__ volatile(                                                                                 \
	    "stp x19,x20,[%1,#152]; stp x21,x22,[%1,#168]; stp x23,x24,[%1,#184]; stp x25,x26,[%1,#200];" \
	    "stp x27,x28,[%1,#216]; stp x29,x30,[%1,#232]; mov %0,sp; str %0,[%1,#248]; adr %0,0f; 0:"    \
	    : "=&r"(pc)                                                                                   \
	    : "r"(words)                                                                                  \
	    : "memory")
static const uint64_t registers_taken = UINT64_C(0x1fff) << 19;
#endif

/* Not memcpy(): AddressSanitizer would complain of what it put between the variables. */
__attribute__((no_sanitize("address"))) static inline void copy_stack(const volatile uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n / 8; i++)
		((volatile uint64_t *)stack_copy)[i] = from[i];
}

/* Copies registers and the stack up to its end, at most MAX bytes, and asks backtrace() for the truth. */
static NOINLINE void take_at_most(size_t max)
{
	uint64_t words[REGS_MAX], pc;

	taken.n_truth = backtrace(taken.truth, FRAMES);
	/* AddressSanitizer's backtrace() sees itself. */
	while (taken.n_truth && (uintptr_t)taken.truth[0] - (uintptr_t)take_at_most >= 4096)
		memmove(taken.truth, taken.truth + 1, (size_t)--taken.n_truth * sizeof(taken.truth[0]));
	REGISTERS_NOW(words, pc);
	const struct regs_arch *arch = regs_arch_native();
	uint64_t sp = words[arch->sp];
	uint64_t n = stack_end(sp) - sp;
	taken.cut = n > max;
	taken.stack_bytes = taken.cut ? max : n;
	copy_stack((const volatile uint64_t *)sp, taken.stack_bytes);
	assert_int_equal(regs_from_dwarf(arch, pc, registers_taken, words, arch->count, &taken.regs), 0);
}

static NOINLINE void take(void)
{
	take_at_most(STACK_MAX);
	STAY;
}

static inline enum unwind_outcome unwind_taken_at_most(size_t max)
{
	struct unwind_input in = {
	    .arch = regs_arch_native(),
	    .regs = &taken.regs,
	    .maps = maps,
	    .stack_address = taken.regs.r[regs_arch_native()->sp],
	    .stack = stack_copy,
	    .stack_bytes = taken.stack_bytes,
	    .stack_want = taken.stack_bytes,
	    .reaches_end = !taken.cut,
	};

	assert_int_equal(maps_read_proc(maps), 0);
	return unwind_stack(&in, frames, max, &n_frames);
}

static inline enum unwind_outcome unwind_taken(void)
{
	return unwind_taken_at_most(FRAMES);
}

/* Every frame but the innermost, whose address differs by where in the function it was asked for. */
static inline void check_truth(size_t n_expected)
{
	assert_true(n_frames > 1 && taken.n_truth > 1);
	for (size_t i = 1; i < n_expected; i++) {
		uint64_t pc = (uintptr_t)taken.truth[i];

		if (i >= n_frames ||
		    (frames[i].pc != pc - 1 && !(frames[i].activation && frames[i].pc == pc)))
			fail_msg("frame %zu of %zu: %lx, backtrace() says %lx", i, n_frames,
			    i < n_frames ? frames[i].pc : 0, pc);
	}
}

static inline void check_complete(void)
{
	assert_string_equal(unwind_outcome_name(unwind_taken()), "complete");
	check_truth((size_t)taken.n_truth);
	assert_int_equal(n_frames, taken.n_truth);
}

static NOINLINE int nested(int n)
{
	int result = n ? nested(n - 1) + 1 : (take(), 0);

	STAY;
	return result;
}

static inline int open_maps(void **state)
{
	store = modules_new(0);
	maps = maps_new(store, getpid(), true);
	/* backtrace() loads libgcc at its first call. */
	return backtrace(taken.truth, 1) == 1 && maps_read_proc(maps) == 0 ? 0 : -1;
}

static inline int close_maps(void **state)
{
	maps_free(maps);
	modules_free(store);
	return 0;
}

#endif
