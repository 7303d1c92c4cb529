/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* The code to which signal handlers return, and the frame that it finds. Whole stacks: stacks.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/instructions.h"

#include <elf.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* As objdump shows __kernel_rt_sigreturn of Linux 6.1 for arm64. */
static const uint32_t call[] = {0xd2801168, 0xd4000001};

static bool is_code(uint32_t first, uint32_t second)
{
	uint8_t bytes[SIGNAL_FRAME_CODE_BYTES];

	memcpy(bytes, &first, 4);
	memcpy(bytes + 4, &second, 4);
	return signal_frame_is_code(bytes);
}

static void the_two_instructions(void **state)
{
	assert_true(is_code(call[0], call[1]));
	assert_false(is_code(call[1], call[0]));
	assert_false(is_code(0xd2801148, call[1])); /* mov x8, #138: rt_sigqueueinfo */
	assert_false(is_code(0xd2801167, call[1])); /* mov x7, #139 */
	assert_false(is_code(call[0], 0xd4000021)); /* svc #1 */
	assert_false(is_code(0xd503201f, call[0])); /* one instruction too early */
	for (unsigned bit = 0; bit < 64; bit++)
		assert_false(is_code(
		    call[0] ^ (bit < 32 ? 1u << bit : 0), call[1] ^ (bit >= 32 ? 1u << (bit - 32) : 0)));
}

static void a_return_address_leads_to_its_code(void **state)
{
	assert_true(signal_frame_code_at(0x1000) == 0x1000);
	assert_true(signal_frame_code_at(0x1000 - 1) == 0x1000); /* looked up less 1 */
	assert_true(signal_frame_code_at(0x1001) == 0x1004);
}

static void others_are_known_by_their_rows(void **state)
{
	assert_null(signal_frame_of(EM_X86_64));
	assert_null(signal_frame_of(EM_RISCV));
	assert_non_null(signal_frame_of(EM_AARCH64));
}

#ifdef __aarch64__

static volatile sig_atomic_t taken;
static uint64_t context_at, frame_at, seen_pc, seen_sp;
static const struct signal_frame *layout;

/* The frame begins with what the second argument points to. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	const char *frame = (const char *)info;

	frame_at = (uint64_t)frame;
	context_at = (uint64_t)context;
	memcpy(&seen_pc, frame + layout->pc_at, 8);
	memcpy(&seen_sp, frame + layout->sp_at, 8);
	taken = seen_pc == uc->uc_mcontext.pc && seen_sp == uc->uc_mcontext.sp &&
	    memcmp(frame + layout->general_at, uc->uc_mcontext.regs, 8u * layout->count) == 0;
}

static void the_kernels_own_layout(void **state)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	layout = signal_frame_of(EM_AARCH64);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1);
	assert_true(taken);
	assert_int_equal(layout->count, 31);
	assert_int_equal(context_at - frame_at, sizeof(siginfo_t));
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_two_instructions),
	    cmocka_unit_test(a_return_address_leads_to_its_code),
	    cmocka_unit_test(others_are_known_by_their_rows),
#ifdef __aarch64__
	    cmocka_unit_test(the_kernels_own_layout),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
