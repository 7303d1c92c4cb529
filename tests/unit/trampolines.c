/* SPDX-License-Identifier: Apache-2.0 */
/* Code that an interpreter copies for each function: found by its bytes, in memory that nobody writes any
 * more, and unwound through without a guess. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/trampolines.h"
#include "sampler/unwind/unwind.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARENA = 64 << 10, FRAMES = 64 };

static const uint8_t by_stack_pointer[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3};
static const uint8_t by_frame_pointer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
static const uint32_t aarch64_code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0};

static struct trampolines_run runs[TRAMPOLINES_RUNS_MAX];

/* As CPython fills an arena: as many copies as have room. */
static void fill(uint8_t *arena, const void *code, size_t code_bytes, size_t stride)
{
	for (size_t at = 0; at + code_bytes <= ARENA; at += stride)
		memcpy(arena + at, code, code_bytes);
}

static bool is_known(const struct trampolines *t, uint64_t address, uint16_t e_machine)
{
	return trampolines_rule(t, address, e_machine)->kind == CFI_SIMPLE;
}

/* Every return address of the arenas and no other address has a rule. */
static void arenas_are_found(void **unused)
{
	const struct {
		uint16_t e_machine;
		const void *code;
		size_t code_bytes, stride;
		uint32_t returns_at;
	} layouts[] = {
	    {EM_X86_64, by_stack_pointer, sizeof(by_stack_pointer), 11, 6},
	    {EM_X86_64, by_stack_pointer, sizeof(by_stack_pointer), 16, 6},
	    {EM_X86_64, by_stack_pointer, sizeof(by_stack_pointer), 272, 6},
	    {EM_X86_64, by_frame_pointer, sizeof(by_frame_pointer), 16, 6},
	    {EM_AARCH64, aarch64_code, sizeof(aarch64_code), 20, 12},
	    {EM_AARCH64, aarch64_code, sizeof(aarch64_code), 32, 12},
	};

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint8_t *code = calloc(3, ARENA);

		for (size_t arena = 0; arena < 3; arena++)
			fill(code + arena * ARENA, layouts[i].code, layouts[i].code_bytes, layouts[i].stride);
		size_t count = trampolines_find(layouts[i].e_machine, code, 3 * ARENA, runs);
		struct trampolines *t = trampolines_new(0x1000, runs, count);
		assert_in_range(count, 1, 3);
		for (uint64_t at = 0; at < 3 * ARENA; at++) {
			const uint64_t in_arena = at % ARENA, start = in_arena - layouts[i].returns_at;
			const bool returns = in_arena >= layouts[i].returns_at &&
			    start % layouts[i].stride == 0 && start + layouts[i].code_bytes <= ARENA;

			if (is_known(t, 0x1000 + at - 1, layouts[i].e_machine) != returns)
				fail_msg("layout %zu: address %#zx", i, (size_t)at);
		}
		assert_false(is_known(t, 0, layouts[i].e_machine));
		assert_false(is_known(t, UINT64_MAX, layouts[i].e_machine));
		assert_false(is_known(t, 0x1000 + layouts[i].returns_at - 1, EM_NONE));
		assert_int_equal(trampolines_find(EM_RISCV, code, 3 * ARENA, runs), 0);
		trampolines_unref(t);
		free(code);
	}
}

/* What is nearly the code, cut, or scattered without a rule. */
static void other_code_is_not(void **unused)
{
	uint8_t code[4096] = {0};

	for (size_t i = 0; i < sizeof(by_stack_pointer); i++) {
		memcpy(code, by_stack_pointer, sizeof(by_stack_pointer));
		code[i] ^= 1;
		assert_int_equal(trampolines_find(EM_X86_64, code, sizeof(by_stack_pointer), runs), 0);
		assert_int_equal(trampolines_find(EM_X86_64, by_stack_pointer, i, runs), 0);
	}
	assert_int_equal(trampolines_find(EM_X86_64, NULL, 0, runs), 0);
	/* Not where an instruction can begin. */
	memcpy(code + 2, aarch64_code, sizeof(aarch64_code));
	assert_int_equal(trampolines_find(EM_AARCH64, code, sizeof(code), runs), 0);
	assert_int_equal(trampolines_find(EM_AARCH64, code + 2, sizeof(aarch64_code), runs), 1);
	memset(code, 0, sizeof(code));
	for (size_t at = 0, n = 0; at + 32 < sizeof(code); at += 16 + n++ % 7)
		memcpy(code + at, by_stack_pointer, sizeof(by_stack_pointer));
	assert_in_range(trampolines_find(EM_X86_64, code, sizeof(code), runs), 2, TRAMPOLINES_RUNS_MAX);
}

/* ---- in a process: this one */

static uint8_t *arena;
static const uint8_t *native_code;
static size_t native_bytes, returns_at;
static struct modules *store;
static struct maps *maps;

static void map_arena(int prot)
{
	const struct map_range range = {
	    .start = (uintptr_t)arena, .len = ARENA, .prot = (uint32_t)prot, .path = ""};

	assert_int_equal(mprotect(arena, ARENA, prot), 0);
	assert_int_equal(maps_add(maps, &range), 0);
}

static const struct cfi_rule *rule_at(size_t copy)
{
	const uint64_t address = (uintptr_t)arena + copy * 16 + returns_at - 1;

	return maps_generated_rule(maps, maps_find(maps, address), address, regs_arch_native()->e_machine);
}

static int begin(void **unused)
{
	if (regs_arch_native() == &regs_x86_64) {
		native_code = by_stack_pointer;
		native_bytes = sizeof(by_stack_pointer);
		returns_at = 6;
	} else {
		native_code = (const uint8_t *)aarch64_code;
		native_bytes = sizeof(aarch64_code);
		returns_at = 12;
	}
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	store = modules_new(0);
	maps = maps_new(store, getpid(), true);
	return arena == MAP_FAILED || !maps ? -1 : 0;
}

static int end(void **unused)
{
	maps_free(maps);
	modules_free(store);
	return munmap(arena, ARENA);
}

static void a_range_is_read_once_and_forgotten_with_it(void **unused)
{
	fill(arena, native_code, native_bytes, native_bytes <= 16 ? 16 : 32);
	/* While it may be written it is not looked at. */
	map_arena(PROT_READ | PROT_WRITE | PROT_EXEC);
	assert_int_equal(rule_at(0)->kind, CFI_NONE);
	map_arena(PROT_READ | PROT_EXEC);
	assert_int_equal(rule_at(0)->kind, CFI_SIMPLE);
	/* It is not read again, not even for an address that was not asked for before. */
	const size_t bytes = maps_bytes(maps);
	assert_int_equal(mprotect(arena, ARENA, PROT_READ | PROT_WRITE), 0);
	memset(arena, 0, ARENA);
	assert_int_equal(rule_at(2)->kind, CFI_SIMPLE);
	/* A copy for a forked process has it; the range's pieces have it. */
	struct maps *copy = maps_copy(maps, getpid(), 0);
	assert_int_equal(maps_remove(maps, (uintptr_t)arena, 4096), 0);
	assert_int_equal(rule_at(4096 / 16)->kind, CFI_SIMPLE);
	assert_int_equal(maps_remove(maps, (uintptr_t)arena, ARENA), 0);
	assert_true(maps_bytes(maps) < bytes);
	const uint64_t address = (uintptr_t)arena + returns_at - 1;
	assert_int_equal(
	    maps_generated_rule(copy, maps_find(copy, address), address, regs_arch_native()->e_machine)->kind,
	    CFI_SIMPLE);
	maps_free(copy);
	/* What is mapped there now is read anew. */
	map_arena(PROT_READ | PROT_EXEC);
	assert_int_equal(rule_at(0)->kind, CFI_NONE);
	assert_int_equal(rule_at(2)->kind, CFI_NONE);
}

static void what_cannot_be_read_has_none(void **unused)
{
	struct maps *nobody = maps_new(store, 0, true);
	const struct map_range range = {
	    .start = 0x10000, .len = ARENA, .prot = PROT_READ | PROT_EXEC, .path = ""};
	const uint16_t e_machine = regs_arch_native()->e_machine;

	/* Nothing is there; and maps of no process. */
	assert_int_equal(maps_add(maps, &range), 0);
	assert_int_equal(maps_add(nobody, &range), 0);
	assert_ptr_equal(
	    maps_generated_rule(maps, maps_find(maps, 0x10005), 0x10005, e_machine), &cfi_no_rule);
	assert_ptr_equal(
	    maps_generated_rule(nobody, maps_find(nobody, 0x10005), 0x10005, e_machine), &cfi_no_rule);
	maps_free(nobody);
}

/* A process that makes such ranges all the time does not make us fork all the time. */
static void reading_is_bounded(void **unused)
{
	/* A budget as good as full, that no time fills again. */
	*maps_cfi_work(maps) = (struct throttle){CFI_WORK_BURST - 1, UINT64_MAX};
	fill(arena, native_code, native_bytes, native_bytes <= 16 ? 16 : 32);
	for (size_t reads = 0; reads < CFI_WORK_BURST / TRAMPOLINES_READ_COST; reads++) {
		map_arena(PROT_READ | PROT_EXEC);
		assert_int_equal(rule_at(0)->kind, CFI_SIMPLE);
	}
	map_arena(PROT_READ | PROT_EXEC);
	assert_ptr_equal(rule_at(0), &cfi_unread_rule);
	*maps_cfi_work(maps) = (struct throttle){CFI_WORK_BURST - 1, UINT64_MAX};
	assert_int_equal(rule_at(0)->kind, CFI_SIMPLE);
}

/* One trampoline that was called by another, twice, without a frame pointer. */
static void stacks_lead_through_it(void **unused)
{
	const struct regs_arch *arch = regs_arch_native();
	const size_t stride = native_bytes <= 16 ? 16 : 32;
	struct unwind_frame frames[FRAMES];
	struct maps *own = maps_new(store, getpid(), true);
	size_t count;

	fill(arena, native_code, native_bytes, stride);
	assert_int_equal(mprotect(arena, ARENA, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(maps_read_proc(own), 0);
	const uint64_t returns = (uintptr_t)arena + returns_at;
	/* What x86-64 leaves out is where aarch64 has x29. The last return address is zero. */
	const uint64_t words[] = {7, returns + stride, 7, returns + 5 * stride, 7, 0, 0, 0};
	struct regs regs = {.pc = returns - 1, .known = UINT64_C(1) << arch->sp};
	regs.r[arch->sp] = 0x7000;
	const struct unwind_input in = {.arch = arch,
	    .regs = &regs,
	    .maps = own,
	    .stack_address = 0x7000,
	    .stack = words,
	    .stack_bytes = sizeof(words),
	    .stack_want = sizeof(words),
	    .reaches_end = true};
	assert_int_equal(unwind_stack(&in, frames, FRAMES, &count), UNWIND_COMPLETE);
	assert_int_equal(count, 3);
	assert_int_equal(frames[1].pc, returns + stride - 1);
	assert_int_equal(frames[2].pc, returns + 5 * stride - 1);
	for (size_t i = 1; i < count; i++)
		assert_true(frames[i].step == UNWIND_STEP_CFI && !frames[i].module &&
		    frames[i].kind == MAP_KIND_ANON && frames[i].vaddr == frames[i].pc);
	maps_free(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(arenas_are_found),
	    cmocka_unit_test(other_code_is_not),
	    cmocka_unit_test_setup_teardown(a_range_is_read_once_and_forgotten_with_it, begin, end),
	    cmocka_unit_test_setup_teardown(what_cannot_be_read_has_none, begin, end),
	    cmocka_unit_test_setup_teardown(reading_is_bounded, begin, end),
	    cmocka_unit_test_setup_teardown(stacks_lead_through_it, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
