/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers of a target, numbered as its DWARF numbers them, and one table per architecture: perf's numbers
 * of the registers, and what the unwinder has to know. Both tables are in every build: the e_machine of the
 * files in the target decides which one is used, not how heaptap was compiled.
 *
 * DWARF numbers: System V ABI AMD64 supplement, figure 3.36; "DWARF for the Arm 64-bit Architecture", section
 * 4.1. perf numbers: arch/x86/include/uapi/asm/perf_regs.h, arch/arm64/include/uapi/asm/perf_regs.h in Linux.
 */
#ifndef SAMPLER_LINUX_REGS_H
#define SAMPLER_LINUX_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REGS_MAX = 33,
	REGS_TRACKED_MAX = 12,
	REGS_ARGUMENTS = 6, /* integer arguments that both calling conventions pass in registers */
	REGS_COPIED_MAX = 13,
	REGS_NONE = 255,
};

struct regs {
	uint64_t pc;
	uint64_t r[REGS_MAX]; /* by DWARF number; registers that are not known are not set */
	uint64_t known;       /* bit n: r[n] is known */
};

struct regs_arch {
	const char *name;
	uint16_t e_machine;
	uint8_t count;       /* DWARF columns used */
	uint8_t sp, fp;      /* DWARF numbers */
	uint8_t ra;          /* usual return address column */
	bool ra_in_register; /* a leaf function has its return address in a register (aarch64) */
	/* true if the pair {caller's frame pointer, return address} ends a frame, so that the caller's frame
	 * is behind it (x86-64); on other machines the pair may be anywhere in the frame */
	bool record_ends_frame;
	uint8_t tracked_count;
	/* registers that a callee must restore, and that a compiled row restores */
	uint8_t tracked[REGS_TRACKED_MAX];
	/* registers that are valid in the caller: tracked ones and stack pointer */
	uint64_t preserved;
	uint64_t perf_mask;           /* for perf_event_attr.sample_regs_user */
	uint8_t perf_pc;              /* perf's number of the program counter */
	const uint8_t *perf_to_dwarf; /* REGS_NONE: not used */
	uint8_t perf_count;
	uint8_t arguments[REGS_ARGUMENTS]; /* of a function at its entry, in order */
	/*
	 * What the preloaded library copies with a stack, in this order, followed by the program counter:
	 * callee-saved registers and stack pointer (struct region_buffer's regs, proto/region.h).
	 */
	uint8_t copied[REGS_COPIED_MAX];
	uint8_t copied_count;
	uint8_t copied_sp; /* index of the stack pointer among them */
	/* a return address is ANDed with this: drops pointer authentication codes */
	uint64_t code_mask;
};

extern const struct regs_arch regs_x86_64;
extern const struct regs_arch regs_aarch64;

/* The table for an ELF file's e_machine, NULL if there is none. */
const struct regs_arch *regs_arch_find(uint16_t e_machine);

/* The table for the machine we run on. */
const struct regs_arch *regs_arch_native(void);

/*
 * From a PERF_SAMPLE_REGS_USER dump. `mask`: as in sample_regs_user. `values`: n words, one per bit of
 * `mask`, in rising order. Returns 0, or -EINVAL if n does not fit `mask`, or if stack pointer or program
 * counter are missing.
 */
int regs_from_perf(
    const struct regs_arch *arch, uint64_t mask, const uint64_t *values, size_t n, struct regs *regs);

/* From words in DWARF order. Bit n of `known`: words[n] holds register n. Returns 0 or -EINVAL as above. */
int regs_from_dwarf(const struct regs_arch *arch, uint64_t pc, uint64_t known, const uint64_t *words,
    size_t n, struct regs *regs);

/* From words as the preloaded library copies them (struct regs_arch, copied). Returns 0 or -EINVAL as
 * above. */
int regs_from_copied(const struct regs_arch *arch, const uint64_t *words, struct regs *regs);

#endif
