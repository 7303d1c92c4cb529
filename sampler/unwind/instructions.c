/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/instructions.h"

#include <elf.h>
#include <string.h>

/* Bytes of "call r/m64", FF /2, by its ModR/M byte and the SIB byte that may follow; 0: it is another
 * instruction. */
static size_t indirect_bytes(uint8_t modrm, uint8_t sib)
{
	unsigned mod = modrm >> 6, rm = modrm & 7;

	if ((modrm >> 3 & 7) != 2)
		return 0;
	size_t bytes = mod != 3 && rm == 4 ? 3 : 2;
	if (mod == 1)
		return bytes + 1;
	bool has_displacement = mod == 2 || (mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5)));
	return has_displacement ? bytes + 4 : bytes;
}

static bool call_x86_64(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *target)
{
	int32_t distance;

	*target = 0;
	/* Before the direct call: its opcode, five bytes back, may be part of the instruction before. */
	for (size_t n = 2; n <= CALL_BYTES_MAX && n <= bytes; n++) {
		const uint8_t *at = code + bytes - n;

		if (at[0] == 0xff && indirect_bytes(at[1], n > 2 ? at[2] : 0) == n)
			return true;
	}
	if (bytes < 5 || code[bytes - 5] != 0xe8)
		return false;
	memcpy(&distance, code + bytes - 4, sizeof(distance));
	*target = address + (uint64_t)(int64_t)distance;
	return true;
}

static bool call_aarch64(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *target)
{
	uint32_t word;

	if (address % 4 || bytes < 4)
		return false;
	memcpy(&word, code + bytes - 4, sizeof(word));
	*target = 0;
	if ((word & 0xfc000000) == 0x94000000) { /* BL: 26 bits, in words, from the instruction itself */
		int64_t distance = (int64_t)((uint64_t)word << 38) >> 36;
		*target = address - 4 + (uint64_t)distance;
		return true;
	}
	return (word & 0xfffffc1f) == 0xd63f0000  /* BLR */
	    || (word & 0xfffff81f) == 0xd63f081f  /* BLRAAZ, BLRABZ */
	    || (word & 0xfffff800) == 0xd73f0800; /* BLRAA, BLRAB */
}

bool call_ends_at(uint16_t e_machine, const uint8_t *code, size_t bytes, uint64_t address, uint64_t *target)
{
	if (e_machine == EM_X86_64)
		return call_x86_64(code, bytes, address, target);
	return e_machine == EM_AARCH64 && call_aarch64(code, bytes, address, target);
}

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
