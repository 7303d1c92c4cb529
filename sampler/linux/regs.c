/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/regs.h"

#include <elf.h>
#include <errno.h>

/* enum perf_event_x86_regs: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8..r15 */
static const uint8_t x86_64_columns[24] = {0, 3, 2, 1, 4, 5, 6, 7, 16, REGS_NONE, REGS_NONE, REGS_NONE,
    REGS_NONE, REGS_NONE, REGS_NONE, REGS_NONE, 8, 9, 10, 11, 12, 13, 14, 15};

const struct regs_arch regs_x86_64 = {
    .name = "x86-64",
    .e_machine = EM_X86_64,
    .count = 17,
    .sp = 7,
    .fp = 6,
    .ra = 16,
    .ra_in_register = false,
    .tracked_count = 6,
    .tracked = {3, 6, 12, 13, 14, 15}, /* rbx rbp r12-r15 */
    .preserved = 1 << 3 | 1 << 6 | 1 << 7 | 0xf << 12,
    .perf_mask = 0xff0fff,
    .perf_pc = 8,
    .perf_to_dwarf = x86_64_columns,
    .perf_count = 24,
    .arguments = {5, 4, 1, 2, 8, 9},     /* rdi rsi rdx rcx r8 r9 */
    .copied = {3, 6, 7, 12, 13, 14, 15}, /* rbx rbp rsp r12-r15 */
    .copied_count = 7,
    .copied_sp = 2,
    .code_mask = ~UINT64_C(0),
    .record_ends_frame = true,
};

/* enum perf_event_arm_regs: x0..x29 lr sp pc; DWARF has x0..x30 sp at 31 and no column for pc */
static const uint8_t aarch64_columns[33] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
    19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, REGS_NONE};

/*
 * A return address signed by PAC has its code in the bits above the virtual address; with 48-bit user
 * addresses those are bits 48 to 63, pointer tags included. For the machine that we run on,
 * regs_arch_native() asks the processor.
 */
const struct regs_arch regs_aarch64 = {
    .name = "aarch64",
    .e_machine = EM_AARCH64,
    .count = 32,
    .sp = 31,
    .fp = 29,
    .ra = 30,
    .ra_in_register = true,
    .tracked_count = 11,
    .tracked = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29},
    .preserved = UINT64_C(0x7ff) << 19 | UINT64_C(1) << 31,
    .perf_mask = UINT64_C(0x1ffffffff),
    .perf_pc = 32,
    .perf_to_dwarf = aarch64_columns,
    .perf_count = 33,
    .arguments = {0, 1, 2, 3, 4, 5},
    .copied = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}, /* x19-x30 sp */
    .copied_count = 13,
    .copied_sp = 12,
    .code_mask = (UINT64_C(1) << 48) - 1,
};

static const struct regs_arch *const archs[] = {&regs_x86_64, &regs_aarch64};

const struct regs_arch *regs_arch_find(uint16_t e_machine)
{
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
		if (archs[i]->e_machine == e_machine)
			return archs[i];
	return NULL;
}

#ifdef __aarch64__
/*
 * The bits of a code address that are neither an authentication code nor a tag. Only the processor can tell,
 * because the number depends on the kernel's configuration (39, 42, 47, 48 or 52 bits). XPACLRI sets the bits
 * of the authentication code in x30 to the value of bit 55, and does nothing without pointer authentication.
 * (It is written as a hint here, which old assemblers and processors accept.) Arm Architecture Reference
 * Manual, D8.10.
 */
static uint64_t own_code_mask(void)
{
	uint64_t user_half = ~(UINT64_C(1) << 55), stripped;

	__asm__ volatile("mov x30, %1\n\thint #7\n\tmov %0, x30" : "=r"(stripped) : "r"(user_half) : "x30");
	return stripped & ((UINT64_C(1) << 55) - 1);
}
#endif

const struct regs_arch *regs_arch_native(void)
{
#ifdef __aarch64__
	static struct regs_arch native;
	if (!native.name) {
		native = regs_aarch64;
		native.code_mask = own_code_mask();
	}
	return &native;
#else
	return &regs_x86_64;
#endif
}

int regs_from_perf(
    const struct regs_arch *arch, uint64_t mask, const uint64_t *values, size_t n, struct regs *regs)
{
	regs->known = 0;
	if (n != (size_t)__builtin_popcountll(mask) || !(mask >> arch->perf_pc & 1))
		return -EINVAL;
	for (; mask; mask &= mask - 1, values++) {
		unsigned bit = (unsigned)__builtin_ctzll(mask);
		uint8_t column = bit < arch->perf_count ? arch->perf_to_dwarf[bit] : REGS_NONE;

		if (bit == arch->perf_pc)
			regs->pc = *values;
		if (column == REGS_NONE)
			continue;
		regs->r[column] = *values;
		regs->known |= UINT64_C(1) << column;
	}
	return regs->known >> arch->sp & 1 ? 0 : -EINVAL;
}

int regs_from_dwarf(const struct regs_arch *arch, uint64_t pc, uint64_t known, const uint64_t *words,
    size_t n, struct regs *regs)
{
	regs->known = 0;
	for (size_t i = 0; i < n && i < arch->count; i++) {
		if (!(known >> i & 1))
			continue;
		regs->r[i] = words[i];
		regs->known |= UINT64_C(1) << i;
	}
	regs->pc = pc;
	if (!arch->ra_in_register) {
		regs->r[arch->ra] = pc;
		regs->known |= UINT64_C(1) << arch->ra;
	}
	return regs->known >> arch->sp & 1 ? 0 : -EINVAL;
}

int regs_from_copied(const struct regs_arch *arch, const uint64_t *words, struct regs *regs)
{
	uint64_t by_number[REGS_MAX], known = 0;

	for (size_t i = 0; i < arch->copied_count; i++) {
		by_number[arch->copied[i]] = words[i];
		known |= UINT64_C(1) << arch->copied[i];
	}
	return regs_from_dwarf(arch, words[arch->copied_count], known, by_number, REGS_MAX, regs);
}
