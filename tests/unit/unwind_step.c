/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/*
 * Hand-made stacks for every outcome of the unwinder, and random ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/unwind.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAMES = 8192 };

static struct modules *store;
static struct maps *maps;
static struct unwind_frame frames[FRAMES];
static size_t n_frames;

/* ---- hand-made stacks in run-time generated code: by frame pointer */

enum { SP = 0x7000, CODE = 0x10000, NO_CODE = 0x90000 };

struct made {
	const char *name;
	uint64_t fp;
	uint64_t words[8]; /* at SP and up */
	size_t bytes;
	bool cut;
	uint64_t pc;
	enum unwind_outcome outcome;
	size_t n;
};

static const struct made made[] = {
    {"return address zero", SP, {SP + 16, CODE + 1, 0, 0}, 32, false, CODE, UNWIND_COMPLETE, 2},
    {"return address zero at once", SP, {0, 0}, 32, false, CODE, UNWIND_END_GUESSED, 1},
    {"caller without frame pointer", SP, {7, CODE + 8}, 64, false, CODE, UNWIND_NO_CFI, 2},
    {"two callers", SP + 8, {7, SP + 32, CODE + 8, 7, 0, 0}, 48, false, CODE, UNWIND_COMPLETE, 2},
    {"return address zero, frame pointer not", SP, {SP + 16, CODE + 1, 5, 0}, 32, false, CODE, UNWIND_NO_CFI,
        2},
    {"frame pointer below the stack pointer", SP - 16, {0}, 64, false, CODE, UNWIND_NO_CFI, 1},
    {"frame pointer not aligned", SP + 4, {CODE, CODE, CODE}, 64, false, CODE, UNWIND_NO_CFI, 1},
    {"frame pointer beyond the cut", SP + 640, {0}, 64, true, CODE, UNWIND_TRUNCATED, 1},
    {"frame pointer beyond the end", SP + 640, {0}, 64, false, CODE, UNWIND_NO_CFI, 1},
    {"frame pointer far away", UINT64_C(0x7fff00000000), {0}, 64, true, CODE, UNWIND_NO_CFI, 1},
    {"frame pointer at the top of memory", UINT64_MAX - 7, {0}, 64, true, CODE, UNWIND_NO_CFI, 1},
    {"return address in no code", SP, {SP + 16, NO_CODE}, 64, false, CODE, UNWIND_NO_CFI, 1},
    {"points to itself", SP, {SP, CODE + 4}, 64, false, CODE, UNWIND_NO_CFI, 2},
    {"starts in no code", SP, {SP + 16, CODE + 4}, 64, false, NO_CODE, UNWIND_NO_MAP, 1},
    {"half a word left", SP, {SP + 16, CODE + 4}, 12, true, CODE, UNWIND_TRUNCATED, 1},
    {"no stack at all", SP, {0}, 0, true, CODE, UNWIND_TRUNCATED, 1},
};

enum { PAGE = 4096 };

/* Of a dump that stopped at a page that was not present: the same, where no byte above it is needed. */
static enum unwind_outcome made_outcome(const struct made *m, bool stopped)
{
	const bool needs = m->fp >= SP && m->fp % 8 == 0 && m->fp - SP + 16 > m->bytes;

	return !stopped || !needs          ? m->outcome
	    : m->fp - SP < m->bytes + PAGE ? UNWIND_NOT_PRESENT
	                                   : UNWIND_NO_CFI;
}

static void walk_made(bool stopped)
{
	struct map_range code = {
	    .start = CODE, .len = 0x1000, .prot = PROT_READ | PROT_EXEC, .path = "//anon"};
	const struct regs_arch *arch = regs_arch_native();

	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		const struct made *m = &made[i];
		struct maps *own = maps_new(store, 0, true);
		struct regs regs = {.pc = m->pc, .known = UINT64_C(1) << arch->sp | UINT64_C(1) << arch->fp};

		regs.r[arch->sp] = SP;
		regs.r[arch->fp] = m->fp;
		assert_int_equal(maps_add(own, &code), 0);
		struct unwind_input in = {.arch = arch,
		    .regs = &regs,
		    .maps = own,
		    .stack_address = SP,
		    .stack = m->words,
		    .stack_bytes = m->bytes,
		    .stack_want = m->bytes + (stopped ? PAGE : 0),
		    .reaches_end = !m->cut && !stopped};
		enum unwind_outcome outcome = unwind_stack(&in, frames, FRAMES, &n_frames);
		if (outcome != made_outcome(m, stopped) || n_frames != m->n)
			fail_msg("%s: %s after %zu frames", m->name, unwind_outcome_name(outcome), n_frames);
		assert_null(frames[0].module);
		for (size_t k = 1; k < n_frames; k++)
			assert_true(frames[k].step == UNWIND_STEP_FP && frames[k].kind == MAP_KIND_ANON);
		maps_free(own);
	}
}

static void frame_pointer_steps(void **state)
{
	walk_made(false);
	walk_made(true);
}

/* ---- hand-made stacks in code with rows */

#ifdef __x86_64__

__asm__(".pushsection .text\n"
        /* As after "pop rbp" in an epilogue: compilers do not say that rbp has its value back. */
        "row_popped_function: .cfi_startproc; .cfi_offset rbp, -16\n"
        "row_popped: nop; nop\n"
        ".cfi_endproc\n"
        "row_by_rbp_function: .cfi_startproc; .cfi_def_cfa rbp, 16; .cfi_offset rbp, -16\n"
        "nop; row_by_rbp: nop\n"
        ".cfi_endproc\n"
        "row_by_r10_function: .cfi_startproc; .cfi_def_cfa r10, 0\n"
        "nop; row_by_r10: nop\n"
        ".cfi_endproc\n"
        "row_in_rcx_function: .cfi_startproc; .cfi_register rip, rcx\n"
        "row_in_rcx: nop; nop\n"
        ".cfi_endproc\n"
        "row_last_function: .cfi_startproc; .cfi_undefined rip\n"
        "nop; row_last: nop\n"
        ".cfi_endproc\n"
        ".popsection\n");

extern const char row_popped[], row_by_rbp[], row_by_r10[], row_in_rcx[], row_last[];

static const struct row_case {
	const char *name;
	const char *pc, *first, *second; /* return addresses at SP and at rbp + 8 */
	uint64_t rbp;
	size_t below; /* bytes of the dump below the stack pointer */
	bool cut;
	enum unwind_outcome outcome;
	size_t n;
} row_cases[] = {
    {"popped", row_popped, row_by_rbp, row_last, SP + 32, 0, false, UNWIND_COMPLETE, 3},
    {"popped, old bytes in the dump", row_popped, row_by_rbp, row_last, SP + 32, 64, false, UNWIND_COMPLETE,
        3},
    {"return address in rcx", row_in_rcx, row_last, NULL, 0, 0, false, UNWIND_COMPLETE, 2},
    {"frame below in the dump", row_popped, row_by_rbp, row_last, SP - 40, 64, false, UNWIND_LOOP, 2},
    {"frame that is this one", row_popped, row_by_rbp, row_last, SP - 8, 64, false, UNWIND_LOOP, 2},
    {"frame below the dump", row_popped, row_by_rbp, row_last, SP - 4096, 64, false, UNWIND_STACK_SWITCH, 2},
    {"frame far above", row_popped, row_by_rbp, row_last, UINT64_C(0x7f0000000000), 0, true,
        UNWIND_STACK_SWITCH, 2},
    {"frame beyond the cut", row_popped, row_by_rbp, row_last, SP + 100000, 0, true, UNWIND_TRUNCATED, 2},
    {"frame beyond the end", row_popped, row_by_rbp, row_last, SP + 100000, 0, false, UNWIND_BAD_READ, 2},
    {"register that is lost", row_popped, row_by_r10, row_last, SP + 32, 0, false, UNWIND_BAD_ROW, 2},
    {"no return address", row_popped, NULL, NULL, SP + 32, 0, false, UNWIND_COMPLETE, 1},
    {"return address in no code", row_popped, (const char *)0x1234, NULL, SP + 32, 0, false, UNWIND_NO_MAP,
        1},
};

static void walk_by_rows(bool stopped)
{
	for (size_t i = 0; i < sizeof(row_cases) / sizeof(row_cases[0]); i++) {
		const struct row_case *c = &row_cases[i];
		uint64_t words[24];
		struct regs regs = {.pc = (uintptr_t)c->pc, .known = UINT64_C(0x1ffff)};

		for (size_t k = 0; k < 24; k++)
			words[k] = 0x1111 * (k + 1);
		words[8] = (uintptr_t)c->first;
		words[8 + 5] = (uintptr_t)c->second;
		regs.r[6] = c->rbp;
		regs.r[7] = SP;
		regs.r[2] = (uintptr_t)c->first;
		struct unwind_input in = {.arch = &regs_x86_64,
		    .regs = &regs,
		    .maps = maps,
		    .stack_address = SP - c->below,
		    .stack = words + 8 - c->below / 8,
		    .stack_bytes = c->below + 16 * 8,
		    .stack_want = c->below + 16 * 8 + (stopped ? PAGE : 0),
		    .reaches_end = !c->cut && !stopped};
		enum unwind_outcome outcome = unwind_stack(&in, frames, FRAMES, &n_frames),
		                    wanted = c->outcome;
		if (stopped && (wanted == UNWIND_TRUNCATED || wanted == UNWIND_BAD_READ))
			wanted = UNWIND_NOT_PRESENT;
		if (outcome != wanted || n_frames != c->n)
			fail_msg("%s: %s after %zu frames", c->name, unwind_outcome_name(outcome), n_frames);
		if (n_frames > 1)
			assert_true(frames[1].pc == (uintptr_t)c->first - 1);
		if (n_frames > 2)
			assert_true(frames[2].pc == (uintptr_t)c->second - 1);
	}
}

static void steps_by_rows(void **state)
{
	assert_int_equal(maps_read_proc(maps), 0);
	walk_by_rows(false);
	walk_by_rows(true);
}

/* ---- hand-made stacks in a file's code without rows: by frame pointer, if a call is in front */

__asm__(".pushsection .text\n"
        "no_rows: nop; nop\n"
        "no_rows_direct: call no_rows\n"
        "no_rows_called: nop\n"
        "no_rows_indirect: call *16(%rax,%rcx,8)\n"
        "no_rows_called_indirect: nop\n"
        /* call, to where no code is */
        ".byte 0xe8, 0, 0, 0, 0x40\n"
        "no_rows_beyond: nop; nop\n"
        ".popsection\n");

extern const char no_rows[], no_rows_called[], no_rows_called_indirect[], no_rows_beyond[];

/* Of code made at run time no bytes can be read. */
static const char *const generated = (const char *)0x100000;

static const struct call_case {
	const char *name, *first, *second; /* return addresses */
	uint64_t first_fp, second_fp;      /* what is saved with them */
	bool cut;
	enum unwind_outcome outcome;
	size_t n;
} call_cases[] = {
    {"two calls", no_rows_called, no_rows_called_indirect, SP + 16, 0, false, UNWIND_COMPLETE, 3},
    {"no call", no_rows + 1, no_rows_called, SP + 16, 0, false, UNWIND_NO_CFI, 1},
    {"in the middle of a call", no_rows_called - 1, no_rows_called, SP + 16, 0, false, UNWIND_NO_CFI, 1},
    {"a call of no code", no_rows_beyond, no_rows_called, SP + 16, 0, false, UNWIND_NO_CFI, 1},
    {"then no call", no_rows_called, no_rows + 1, SP + 16, SP + 64, false, UNWIND_NO_CFI, 2},
    /* it may use the register for something else */
    {"called by code of a file", no_rows_called, NULL, 7, 0, false, UNWIND_NO_CFI, 2},
    {"called by generated code", generated + 4, no_rows_called, SP + 16, 0, false, UNWIND_COMPLETE, 3},
    {"by some without frame pointer", generated + 4, no_rows_called, 7, 0, false, UNWIND_NO_CFI, 1},
    {"by some with one below", generated + 4, no_rows_called, SP - 16, 0, false, UNWIND_NO_CFI, 1},
    {"by some with one that is this one", generated + 4, no_rows_called, SP, 0, false, UNWIND_NO_CFI, 1},
    {"by some with one beyond the end", generated + 4, no_rows_called, SP + 640, 0, false, UNWIND_NO_CFI, 1},
    {"by some with one beyond the cut", generated + 4, no_rows_called, SP + 640, 0, true, UNWIND_TRUNCATED,
        2},
    {"by some with one far away", generated + 4, no_rows_called, SP + (1 << 30), 0, true, UNWIND_NO_CFI, 1},
};

static void steps_by_frame_pointer_follow_calls(void **state)
{
	const struct map_range anonymous = {
	    .start = (uintptr_t)generated, .len = 0x1000, .prot = PROT_READ | PROT_EXEC};

	assert_int_equal(maps_read_proc(maps), 0);
	assert_int_equal(maps_add(maps, &anonymous), 0);
	/* Once without the unwinder's cache, then with it. */
	for (size_t i = 0; i < 40 * sizeof(call_cases) / sizeof(call_cases[0]); i++) {
		const struct call_case *c = &call_cases[i % (sizeof(call_cases) / sizeof(call_cases[0]))];
		struct regs regs = {.pc = (uintptr_t)no_rows, .known = 1 << 6 | 1 << 7};
		uint64_t words[8] = {c->first_fp, (uintptr_t)c->first, c->second_fp, (uintptr_t)c->second};

		regs.r[6] = regs.r[7] = SP;
		struct unwind_input in = {.arch = &regs_x86_64,
		    .regs = &regs,
		    .maps = maps,
		    .stack_address = SP,
		    .stack = words,
		    .stack_bytes = sizeof(words),
		    .stack_want = sizeof(words),
		    .reaches_end = !c->cut};
		enum unwind_outcome outcome = unwind_stack(&in, frames, FRAMES, &n_frames);
		if (outcome != c->outcome || n_frames != c->n)
			fail_msg("%s: %s after %zu frames", c->name, unwind_outcome_name(outcome), n_frames);
		for (size_t k = 1; k < n_frames; k++)
			assert_int_equal(frames[k].step, UNWIND_STEP_FP);
	}
}

#endif

/* ---- from code without rows into code with rows, where a frame record may be anywhere in its frame */

#ifdef __aarch64__

__asm__(
    ".pushsection .text\n"
    "row_of_caller_function: .cfi_startproc; .cfi_def_cfa sp, 96; .cfi_offset 29, -96; .cfi_offset 30, -88\n"
    "blr x0\n"
    ".globl row_of_caller; .hidden row_of_caller\n"
    "row_of_caller: nop\n"
    ".cfi_endproc\n"
    ".popsection\n");

extern const char row_of_caller[] __attribute__((visibility("hidden")));

/* This program's code: in user-mode emulation /proc has none of it. */
static int add_code(struct dl_phdr_info *program, size_t bytes, void *path)
{
	for (int i = 0; i < program->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &program->dlpi_phdr[i];
		const uint64_t before = part->p_vaddr % 4096;
		const struct map_range code = {.start = program->dlpi_addr + part->p_vaddr - before,
		    .len = (part->p_memsz + before + 4095) / 4096 * 4096,
		    .pgoff = part->p_offset - before,
		    .prot = PROT_READ | PROT_EXEC,
		    .path = path};

		if (part->p_type == PT_LOAD && part->p_flags & PF_X)
			assert_int_equal(maps_add(maps, &code), 0);
	}
	return 1;
}

static void a_record_below_its_frames_end(void **state)
{
	enum { RECORD = 2, CALLER = 10, CALLER_WORDS = 12, AGAIN = CODE + 0x20 };
	const struct map_range code = {
	    .start = CODE, .len = 0x1000, .prot = PROT_READ | PROT_EXEC, .path = "//anon"};
	uint64_t words[CALLER + CALLER_WORDS + 2];
	struct regs regs = {.pc = CODE, .known = UINT64_C(1) << 31 | UINT64_C(1) << 29};

	char path[4096] = "";
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	dl_iterate_phdr(add_code, path);
	assert_int_equal(maps_add(maps, &code), 0);
	for (size_t i = 0; i < sizeof(words) / 8; i++)
		words[i] = NO_CODE + i;
	words[RECORD] = SP + CALLER * 8;
	words[RECORD + 1] = (uintptr_t)row_of_caller;
	words[CALLER] = 0;
	words[CALLER + 1] = AGAIN;
	regs.r[31] = SP;
	regs.r[29] = SP + RECORD * 8;
	struct unwind_input in = {.arch = &regs_aarch64,
	    .regs = &regs,
	    .maps = maps,
	    .stack_address = SP,
	    .stack = words,
	    .stack_bytes = sizeof(words),
	    .stack_want = sizeof(words),
	    .reaches_end = true};
	(void)unwind_stack(&in, frames, FRAMES, &n_frames);
	assert_int_equal(n_frames, 3);
	assert_int_equal(frames[1].pc, (uintptr_t)row_of_caller - 1);
	assert_int_equal(frames[2].pc, AGAIN - 1);
	assert_int_equal(frames[2].step, UNWIND_STEP_CFI);
}

#endif

static void every_outcome_has_a_name(void **state)
{
	for (int i = 0; i < UNWIND_OUTCOMES; i++) {
		assert_non_null(unwind_outcome_name((enum unwind_outcome)i));
		const char *marker = unwind_marker((enum unwind_outcome)i);
		assert_int_equal(marker == NULL, i == UNWIND_COMPLETE);
		assert_true(!marker || (marker[0] == '[' && marker[strlen(marker) - 1] == ']'));
	}
	assert_string_equal(unwind_outcome_name(UNWIND_GUESSED), "frames guessed");
	/* The same frame, and so the same address. */
	assert_ptr_equal(unwind_marker(UNWIND_GUESSED), unwind_marker(UNWIND_END_GUESSED));
}

static void perf_registers(void **state)
{
	uint64_t values[64];
	struct regs regs;

	for (uint64_t i = 0; i < 64; i++)
		values[i] = 100 + i;
	assert_int_equal(regs_from_perf(&regs_x86_64, 0xff0fff, values, 20, &regs), 0);
	/* ax bx cx dx si di bp sp ip flags cs ss r8.. */
	static const uint64_t expected[] = {
	    100, 103, 102, 101, 104, 105, 106, 107, 112, 113, 114, 115, 116, 117, 118, 119, 108};
	for (size_t i = 0; i < 17; i++)
		assert_true(regs.r[i] == expected[i] && regs.known >> i & 1);
	assert_true(regs.pc == 108);
	assert_int_equal(regs_from_perf(&regs_x86_64, 0xff0fff, values, 19, &regs), -EINVAL);
	assert_int_equal(regs_from_perf(&regs_x86_64, 0xff0fff & ~0x100, values, 19, &regs), -EINVAL);
	assert_int_equal(regs_from_perf(&regs_x86_64, 0xff0fff & ~0x80, values, 19, &regs), -EINVAL);
	assert_int_equal(regs_from_perf(&regs_aarch64, regs_aarch64.perf_mask, values, 33, &regs), 0);
	assert_true(regs.r[30] == 130 && regs.r[31] == 131 && regs.pc == 132);
}

/* The outcome of anything at all is one of ours, and the same each time. */
static void random_registers_and_stacks(void **state)
{
	const struct regs_arch *arch = regs_arch_native();
	uint64_t words[512];

	assert_int_equal(maps_read_proc(maps), 0);
	srand(2);
	for (int round = 0; round < 20000; round++) {
		struct regs regs = {.known = UINT64_MAX};

		for (size_t i = 0; i < 512; i++)
			words[i] = rand() % 2
			    ? (uintptr_t)random_registers_and_stacks + (uint64_t)(rand() % 4096)
			    : SP + (uint64_t)(rand() % 5000) * (rand() % 9 ? 8 : 1);
		for (unsigned i = 0; i < arch->count; i++)
			regs.r[i] = words[rand() % 512];
		regs.pc = (uintptr_t)random_registers_and_stacks + (uint64_t)(rand() % 8192);
		regs.r[arch->sp] = SP;
		struct unwind_input in = {.arch = arch,
		    .regs = &regs,
		    .maps = maps,
		    .stack_address = SP,
		    .stack = words,
		    .stack_bytes = (size_t)rand() % sizeof(words),
		    .stack_want = sizeof(words)};
		size_t n, again;
		enum unwind_outcome outcome = unwind_stack(&in, frames, FRAMES, &n);
		assert_true((unsigned)outcome < UNWIND_OUTCOMES && n >= 1 && n <= 600);
		assert_int_equal(unwind_stack(&in, frames, FRAMES, &again), outcome);
		assert_int_equal(n, again);
	}
}

static int open_maps(void **state)
{
	store = modules_new(0);
	maps = maps_new(store, getpid(), true);
	return maps_read_proc(maps);
}

static int close_maps(void **state)
{
	maps_free(maps);
	modules_free(store);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(frame_pointer_steps),
#ifdef __x86_64__
	    cmocka_unit_test(steps_by_rows),
	    cmocka_unit_test(steps_by_frame_pointer_follow_calls),
#endif
#ifdef __aarch64__
	    cmocka_unit_test(a_record_below_its_frames_end),
#endif
	    cmocka_unit_test(every_outcome_has_a_name),
	    cmocka_unit_test(perf_registers),
	    cmocka_unit_test(random_registers_and_stacks),
	};

	return cmocka_run_group_tests(tests, open_maps, close_maps);
}
