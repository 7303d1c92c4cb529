/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/buffer.h"
#include "proto/region.h"
#include "sampler/linux/regs.h"

#include <elf.h>
#include <errno.h>
#include <sys/auxv.h>

static const struct regs_arch *const both[] = {&regs_x86_64, &regs_aarch64};

/* What proto/region.h says of struct region_buffer, number by number. */
static void copied_registers_are_what_a_walk_needs(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		const struct regs_arch *arch = both[i];
		uint64_t words[BUFFER_REGS], copied = 0;
		struct regs regs;

		assert_true(arch->copied_count < BUFFER_REGS);
		assert_int_equal(arch->copied[arch->copied_sp], arch->sp);
		for (uint64_t k = 0; k < arch->copied_count; k++) {
			copied |= UINT64_C(1) << arch->copied[k];
			words[k] = 0x1000 + k;
		}
		for (unsigned k = 0; k < arch->tracked_count; k++)
			assert_true(copied >> arch->tracked[k] & 1);
		words[arch->copied_count] = 0x4711;
		assert_int_equal(regs_from_copied(arch, words, &regs), 0);
		assert_true(regs.pc == 0x4711);
		assert_true((regs.known & copied) == copied);
		for (uint64_t k = 0; k < arch->copied_count; k++)
			assert_true(regs.r[arch->copied[k]] == 0x1000 + k);
		/* The return address: on x86-64 the column that is the program counter, on aarch64 x30. */
		assert_true(arch->ra_in_register || regs.r[arch->ra] == 0x4711);
	}
}

/* Each register at most once, none that the table of DWARF numbers does not have, none that is the stack's.
 */
static void arguments_are_registers(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		uint64_t seen = 0;

		for (size_t k = 0; k < REGS_ARGUMENTS; k++) {
			uint8_t number = both[i]->arguments[k];

			assert_true(number < both[i]->count && number != both[i]->sp);
			assert_false(seen >> number & 1);
			assert_false(both[i]->preserved >> number & 1);
			seen |= UINT64_C(1) << number;
		}
	}
}

static void without_a_stack_pointer_there_is_no_walk(void **state)
{
	const uint64_t words[REGS_MAX] = {0};
	struct regs regs;

	assert_int_equal(regs_from_dwarf(&regs_x86_64, 1, 1 << 3, words, REGS_MAX, &regs), -EINVAL);
	assert_int_equal(regs_from_dwarf(&regs_x86_64, 1, 1 << 7, words, REGS_MAX, &regs), 0);
	assert_null(regs_arch_find(EM_RISCV));
	assert_ptr_equal(regs_arch_find(EM_AARCH64), &regs_aarch64);
}

static uintptr_t signed_by_processor(uintptr_t address)
{
#ifdef __aarch64__
	register uintptr_t x17 __asm__("x17") = address;
	register uintptr_t x16 __asm__("x16") = 4711;
	__asm__ volatile("hint #8" : "+r"(x17) : "r"(x16)); /* PACIA1716 */
	return x17;
#else
	return address;
#endif
}

/* What this processor makes of a code address the mask undoes, and nothing else. One signature in 128, of the
 * seven bits that are free of a user's address, is zero. */
static void the_code_mask_is_the_processors(void **state)
{
	const struct regs_arch *arch = regs_arch_native();
	uintptr_t here = (uintptr_t)the_code_mask_is_the_processors, stack = (uintptr_t)&arch;
	bool any_differs = false;

	assert_true((stack & arch->code_mask) == stack);
	for (uintptr_t pc = here; pc < here + 64 * 4; pc += 4) {
		assert_true((pc & arch->code_mask) == pc);
		assert_true((signed_by_processor(pc) & arch->code_mask) == pc);
		any_differs |= signed_by_processor(pc) != pc;
	}
#ifdef __aarch64__
	bool authenticates = getauxval(AT_HWCAP) >> 30 & 1; /* HWCAP_PACA */
	assert_int_equal(any_differs, authenticates);
	assert_true(arch->code_mask >> 39 && !(arch->code_mask >> 55));
	assert_ptr_equal(regs_arch_native(), arch);
#else
	assert_false(any_differs);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_code_mask_is_the_processors),
	    cmocka_unit_test(copied_registers_are_what_a_walk_needs),
	    cmocka_unit_test(arguments_are_registers),
	    cmocka_unit_test(without_a_stack_pointer_there_is_no_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
