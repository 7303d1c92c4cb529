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

#endif
