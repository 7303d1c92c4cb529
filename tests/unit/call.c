/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/*
 * Calls in front of an address. Bytes of x86-64 are what "as" makes of the instruction beside them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/instructions.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS = 0x401000 };

static const struct code {
	const char *text;
	size_t bytes;
	uint8_t code[8];
	bool is_call;
	uint64_t target;
} x86_64[] = {
    {"call .+5+0x100", 5, {0xe8, 0x00, 0x01, 0, 0}, true, ADDRESS + 0x100},
    {"call .+5-0x20", 5, {0xe8, 0xe0, 0xff, 0xff, 0xff}, true, ADDRESS - 0x20},
    {"call *%rax", 2, {0xff, 0xd0}, true, 0},
    {"call *%r12", 3, {0x41, 0xff, 0xd4}, true, 0},
    {"notrack call *%rdx", 3, {0x3e, 0xff, 0xd2}, true, 0},
    {"call *(%rax)", 2, {0xff, 0x10}, true, 0},
    {"call *0x1234(%rip)", 6, {0xff, 0x15, 0x34, 0x12, 0, 0}, true, 0},
    {"call *(%rsp)", 3, {0xff, 0x14, 0x24}, true, 0},
    {"call *0x601000(,%rax,8)", 7, {0xff, 0x14, 0xc5, 0, 0x10, 0x60, 0}, true, 0},
    {"call *8(%rbx)", 3, {0xff, 0x53, 0x08}, true, 0},
    {"call *8(%rsp,%rcx,2)", 4, {0xff, 0x54, 0x4c, 0x08}, true, 0},
    {"call *0x100(%rbp)", 6, {0xff, 0x95, 0, 1, 0, 0}, true, 0},
    {"call *0x100(%r12)", 8, {0x41, 0xff, 0x94, 0x24, 0, 1, 0, 0}, true, 0},
    {"mov -0x18(%rbp),%rdi; call *0x10(%r13)", 8, {0x48, 0x8b, 0x7d, 0xe8, 0x41, 0xff, 0x55, 0x10}, true, 0},
    {"call .+5-0xa800c0, with the end of call *-1(%rdi)", 5, {0xe8, 0x40, 0xff, 0x57, 0xff}, true, 0},
    {"nop", 1, {0x90}, false, 0},
    {"jmp .+5", 5, {0xe9, 0, 0, 0, 0}, false, 0},
    {"jmp *%rax", 2, {0xff, 0xe0}, false, 0},
    {"push (%rax)", 2, {0xff, 0x30}, false, 0},
    {"inc %eax", 2, {0xff, 0xc0}, false, 0},
    {"lcall *(%rax)", 2, {0xff, 0x18}, false, 0},
    {"a call, and a nop", 6, {0xe8, 0, 1, 0, 0, 0x90}, false, 0},
    {"a call without its last byte", 4, {0xe8, 0, 1, 0}, false, 0},
    {"half of call *8(%rbx)", 2, {0xff, 0x53}, false, 0},
    {"nothing", 0, {0}, false, 0},
};

static void calls_of_x86_64(void **state)
{
	for (size_t i = 0; i < sizeof(x86_64) / sizeof(x86_64[0]); i++) {
		const struct code *c = &x86_64[i];

		/* As far as there is code, and in front of it bytes of other instructions; never beyond. */
		for (size_t before = 0; before < 2 * CALL_BYTES_MAX; before++) {
			size_t bytes = before + c->bytes;
			uint8_t *code = malloc(bytes + 1);
			uint64_t target = 1;

			memset(code, 0x90, before);
			memcpy(code + before, c->code, c->bytes);
			bool is_call = call_ends_at(EM_X86_64, code, bytes, ADDRESS, &target);
			if (is_call != c->is_call || (is_call && target != c->target))
				fail_msg("%s: %d, target %#lx", c->text, is_call, target);
			free(code);
		}
	}
}

static const struct word {
	const char *text;
	uint32_t word;
	bool is_call;
	uint64_t target;
} aarch64[] = {
    {"bl .+0x100", 0x94000040, true, ADDRESS - 4 + 0x100},
    {"bl .-8", 0x97fffffe, true, ADDRESS - 4 - 8},
    {"blr x3", 0xd63f0060, true, 0},
    {"blraaz x8", 0xd63f091f, true, 0},
    {"blrabz x8", 0xd63f0d1f, true, 0},
    {"blraa x8, x9", 0xd73f0909, true, 0},
    {"blrab x8, sp", 0xd73f0d1f, true, 0},
    {"b .+0x100", 0x14000040, false, 0},
    {"br x3", 0xd61f0060, false, 0},
    {"ret", 0xd65f03c0, false, 0},
    {"nop", 0xd503201f, false, 0},
};

static void calls_of_aarch64(void **state)
{
	for (size_t i = 0; i < sizeof(aarch64) / sizeof(aarch64[0]); i++) {
		const struct word *w = &aarch64[i];
		uint8_t code[4];
		uint64_t target = 1;

		memcpy(code, &w->word, sizeof(code));
		bool is_call = call_ends_at(EM_AARCH64, code, sizeof(code), ADDRESS, &target);
		if (is_call != w->is_call || (is_call && target != w->target))
			fail_msg("%s: %d, target %#lx", w->text, is_call, target);
		assert_false(call_ends_at(EM_AARCH64, code, sizeof(code), ADDRESS + 2, &target));
		assert_false(call_ends_at(EM_AARCH64, code, 3, ADDRESS, &target));
		assert_false(call_ends_at(EM_RISCV, code, sizeof(code), ADDRESS, &target));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(calls_of_x86_64),
	    cmocka_unit_test(calls_of_aarch64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
