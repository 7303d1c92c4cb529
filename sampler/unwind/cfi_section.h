/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One section of call frame information, .eh_frame or .debug_frame, as input for libdw.
 *
 * libdw gets our memory, never the file. There are two ways:
 *
 *  - .eh_frame with its binary search table (.eh_frame_hdr), the usual case: a sparse copy of the file, laid
 *    out as the file is, in which only the pages that a lookup touches are filled in. The copied ELF header
 *    has no section headers, so that libdw finds the table through PT_GNU_EH_FRAME: with section headers it
 *    ignores the table where lld puts it (behind .eh_frame) and reads every entry.
 *  - without a table, and for .debug_frame: an ELF file made in memory that holds this section and nothing
 *    else.
 *
 * Every entry is checked before libdw runs it: its interpreter allocates whatever an entry asks for (2 GiB
 * for a register number near 2^31, a frame per DW_CFA_remember_state).
 *
 * A section holds only what the file has, too: it may be closed at any time, and opened again.
 */
#ifndef SAMPLER_UNWIND_CFI_SECTION_H
#define SAMPLER_UNWIND_CFI_SECTION_H

#include "sampler/unwind/module_file.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_section;

/* One look-up, and the work for it. */
struct cfi_reading {
	const struct module_file *file;
	uint64_t bytes_max; /* memory that a section read from end to end may take */
	uint64_t work;      /* in units of work (cfi.h) */
	/* something could not be read, or memory was short: a row that was not found may exist */
	bool failed;
	bool unread; /* a section is too large, or compressed by zstd: it has rows that are not found */
};

/* Each returns NULL if the file has no such section, or it cannot be read or is invalid. */
struct cfi_section *cfi_section_open_table(struct cfi_reading *reading);    /* .eh_frame through its table */
struct cfi_section *cfi_section_open_eh_frame(struct cfi_reading *reading); /* .eh_frame without one */
struct cfi_section *cfi_section_open_debug_frame(struct cfi_reading *reading);
void cfi_section_close(struct cfi_section *section); /* NULL is allowed */

/* The row for `vaddr`, which the caller frees with free(). NULL if there is no row or it is refused. The file
 * must be the one that was opened. */
Dwarf_Frame *cfi_section_frame(struct cfi_section *section, struct cfi_reading *reading, uint64_t vaddr);

/* The memory that the section takes. libdw's part is estimated. */
size_t cfi_section_bytes(const struct cfi_section *section);

/* ---- checks of call frame instructions before libdw runs them (cfi_section_check.c): bounded register
 * numbers, depth of remembered states, size of expressions. Pure. */

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

/*
 * ---- takes one section out of a file (cfi_section_extract.c), and makes an ELF file in memory that has this
 * section alone:
 *
 *	ELF header | the section, decompressed | section names | section headers: none, the section, the names
 */
struct cfi_extract {
	uint8_t *elf; /* from malloc(), the caller's */
	size_t elf_bytes;
	size_t section; /* where the section begins in `elf` */
	size_t section_bytes;
	/* What it took, also after an error: bytes of the file, and bytes of the section, which may have been
	 * inflated in vain. */
	uint64_t read_bytes, plain_bytes;
};

/* `name`: .eh_frame or .debug_frame (also found as .zdebug_frame). Returns 0, -ENOENT, -EFBIG, -ENOEXEC,
 * -EOPNOTSUPP (compressed by zstd), -ENOMEM (also if more than bytes_max would be needed) or -errno. */
int cfi_extract_section(
    const struct module_file *file, const char *name, uint64_t bytes_max, struct cfi_extract *extract);

#endif
