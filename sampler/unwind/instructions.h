/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is known by its instructions: a call, and the code to which signal handlers return. Pure.
 *
 * Does a call instruction end at an address? A return address has a call in front of it; most other words of
 * a stack do not.
 *
 * Encodings: Intel SDM volume 2, CALL, and section 2.1.5 (ModR/M and SIB bytes); Arm Architecture Reference
 * Manual for A-profile, C6.2, BL, BLR and BLRAA.
 */
#ifndef SAMPLER_UNWIND_INSTRUCTIONS_H
#define SAMPLER_UNWIND_INSTRUCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CALL_BYTES_MAX = 7 }; /* longest call without prefixes: opcode, ModR/M, SIB, 32 bits of displacement */

/*
 * `code`: the bytes in front of `address`, the last of them at address - 1; fewer than CALL_BYTES_MAX where
 * the code begins. *target: the address that a direct call calls. 0 for a call through a register or memory,
 * and for bytes that can be read as either kind. An unknown architecture has no calls.
 */
bool call_ends_at(uint16_t e_machine, const uint8_t *code, size_t bytes, uint64_t address, uint64_t *target);

/*
 * ---- the frame that the kernel puts on the stack to call a signal handler, known by the code to which the
 * handler returns: the two instructions that call rt_sigreturn.
 *
 * aarch64 only. The vdso's unwind rows for this code follow the frame record to the caller of the interrupted
 * function. They skip the interrupted function, its stack pointer and its registers. musl's code has no rows.
 * On x86-64 the rows are right.
 *
 * Layout: struct rt_sigframe, arch/arm64/kernel/signal.c; struct ucontext and struct sigcontext,
 * arch/arm64/include/uapi/asm. The instructions: arch/arm64/kernel/vdso/sigreturn.S.
 */

/* Where the interrupted code's registers are, in bytes from the stack pointer in the frame. */
struct signal_frame {
	uint16_t general_at; /* x0 and the following ones, without a gap */
	uint16_t count;      /* of the general registers; their DWARF numbers begin at 0 */
	uint16_t sp_at, pc_at;
};

enum { SIGNAL_FRAME_CODE_BYTES = 8 };

/* NULL if this ELF machine needs none: its unwind rows are right. */
const struct signal_frame *signal_frame_of(uint16_t e_machine);

/* Where such code begins: at the instruction at VADDR or, if VADDR is a return address less 1, at that return
 * address. */
uint64_t signal_frame_code_at(uint64_t vaddr);

/* Are these SIGNAL_FRAME_CODE_BYTES bytes the two instructions? */
bool signal_frame_is_code(const uint8_t *code);

#endif
