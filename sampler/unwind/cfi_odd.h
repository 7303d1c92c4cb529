/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rows that do not fit the plain form, kept as DWARF operations and evaluated on the dump.
 *
 * The evaluator knows the operations that compilers and hand-written assembly use in unwind rows. No
 * operation is a branch, so the evaluator always ends. A row with any other operation is rejected when it is
 * compiled.
 */
#ifndef SAMPLER_UNWIND_CFI_ODD_H
#define SAMPLER_UNWIND_CFI_ODD_H

#include "sampler/linux/regs.h"
#include "sampler/unwind/instructions.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CFI_ODD_OPS_MAX = 128, CFI_ODD_STACK_MAX = 32 };

enum cfi_odd_how {
	CFI_ODD_SAME,          /* unchanged */
	CFI_ODD_UNKNOWN,       /* lost */
	CFI_ODD_AT_OFFSET,     /* in memory at CFA + offset */
	CFI_ODD_OFFSET,        /* is CFA + offset */
	CFI_ODD_REGISTER,      /* in register offset */
	CFI_ODD_AT_EXPRESSION, /* in memory where the operations lead */
	CFI_ODD_EXPRESSION,    /* is what the operations yield */
};

struct cfi_odd_place {
	uint8_t how;
	uint16_t first, count; /* its operations in ops[] */
	int64_t offset;
};

struct cfi_odd_op {
	uint8_t atom;
	uint64_t number, number2;
};

struct cfi_odd {
	/* Code to which signal handlers return. No call is in front of this code, so 1 is not subtracted from
	 * its return address. */
	bool returned_to;
	struct cfi_odd_place cfa; /* CFI_ODD_EXPRESSION or, with offset and reg, CFI_ODD_OFFSET */
	uint8_t cfa_reg;
	struct cfi_odd_place ra;
	struct cfi_odd_place reg[REGS_MAX];
	uint16_t op_count;
	struct cfi_odd_op *ops; /* the last member, see cfi_odd_equal() */
};

/* Compiles FRAME, a row from libdw. NULL if out of memory, or if the row cannot be evaluated. */
struct cfi_odd *cfi_odd_new(const struct regs_arch *arch, Dwarf_Frame *frame, int ra_column);
/* The row of code to which signal handlers return. NULL if out of memory. */
struct cfi_odd *cfi_odd_new_signal(const struct regs_arch *arch, const struct signal_frame *frame);
void cfi_odd_free(struct cfi_odd *odd);

/* Rows repeat: all entries of a PLT have the same row. */
bool cfi_odd_equal(const struct cfi_odd *a, const struct cfi_odd *b);
uint64_t cfi_odd_mix(uint64_t hash, const struct cfi_odd *odd);

/* Reads N (1, 2, 4 or 8) bytes at ADDRESS of the target into *VALUE, zero-extended. */
typedef bool cfi_odd_read(void *context, uint64_t address, unsigned n, uint64_t *value);

/*
 * Overwrites REGS with the caller's registers, and yields the CFA. A register whose memory is below the stack
 * pointer has been popped already, and keeps its value. A register whose memory cannot be read becomes
 * unknown. False if the CFA or the return address cannot be computed; *MISSING is then the address that could
 * not be read, or 0 if there is another reason.
 */
bool cfi_odd_step(const struct cfi_odd *odd, const struct regs_arch *arch, struct regs *regs,
    cfi_odd_read *read, void *context, uint64_t *cfa, uint64_t *missing);

#endif
