/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/signal_frame.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

enum {
	INFO_BYTES = 128, /* siginfo_t */
	CONTEXT_AT =
	    176, /* of sigcontext in ucontext: flags, link, stack, mask and its reserve; aligned to 16 */
	ADDRESS_BYTES = 8, /* of the fault, before the registers */
	GENERAL = 31,      /* x0 to x30 */
	GENERAL_AT = INFO_BYTES + CONTEXT_AT + ADDRESS_BYTES,
	INSTRUCTION_BYTES = 4,
};

static const struct signal_frame aarch64 = {
    .general_at = GENERAL_AT,
    .count = GENERAL,
    .sp_at = GENERAL_AT + GENERAL * 8,
    .pc_at = GENERAL_AT + GENERAL * 8 + 8,
};

const struct signal_frame *signal_frame_of(uint16_t e_machine)
{
	return e_machine == EM_AARCH64 ? &aarch64 : NULL;
}

uint64_t signal_frame_code_at(uint64_t vaddr)
{
	return (vaddr + INSTRUCTION_BYTES - 1) & ~(uint64_t)(INSTRUCTION_BYTES - 1);
}

bool signal_frame_is_code(const uint8_t *code)
{
	/* mov x8, #139; svc #0 */
	static const uint8_t call[SIGNAL_FRAME_CODE_BYTES] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};

	return memcmp(code, call, sizeof(call)) == 0;
}
