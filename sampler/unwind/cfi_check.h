/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks call frame instructions before libdw runs them: bounded register numbers, depth of remembered
 * states, size of expressions. Pure.
 */
#ifndef SAMPLER_UNWIND_CFI_CHECK_H
#define SAMPLER_UNWIND_CFI_CHECK_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libdw's work on an entry takes time and memory of this order. The checks add it up. */
struct cfi_check_cost {
	uint64_t instruction_bytes;
	uint64_t remembered; /* states, each a copy of the whole row */
	uint64_t expression_bytes;
};

/* Of all entries of a section. */
struct cfi_check_summary {
	size_t entries;
	struct cfi_check_cost largest; /* each member: its largest value in any entry */
};

enum {
	CFI_CHECK_REGISTERS = 256, /* the highest in use are some 130 */
	CFI_CHECK_REMEMBERED = 64,
	CFI_CHECK_EXPRESSION_BYTES = 512,
	CFI_CHECK_INSTRUCTION_BYTES = 128 << 10, /* of one entry; the largest that was met has 33 KiB */
};

/*
 * Checks the entry at OFFSET of DATA (.eh_frame if EH) and, for an FDE, the CIE it belongs to. E_IDENT and
 * E_MACHINE of the ELF file. An entry that fails must not be given to libdw.
 */
bool cfi_check_entry(const unsigned char *e_ident, uint16_t e_machine, Elf_Data *data, bool eh,
    uint64_t offset, struct cfi_check_cost *cost);

/* Checks every entry of DATA, and makes the entries that fail unusable. False if there are more than
 * ENTRIES_MAX entries, or if they share instructions so often that the check would take long. */
bool cfi_check_all(const unsigned char *e_ident, uint16_t e_machine, Elf_Data *data, bool eh,
    size_t entries_max, struct cfi_check_summary *summary);

#endif
