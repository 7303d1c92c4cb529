/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/arch/regs.h"

#include <errno.h>

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
 * Which bits of a code address are its own, and not of an authentication code or a tag: asked of the
 * processor, because it depends on how the kernel was configured (39, 42, 47, 48 or 52 bits). XPACLRI (here
 * as the hint that it is, which old assemblers and processors take) sets the bits of the code in x30 to what
 * bit 55 is, and does nothing where there is no pointer authentication. Arm Architecture Reference Manual,
 * D8.10.
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
