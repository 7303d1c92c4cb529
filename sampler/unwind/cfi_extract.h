/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes one section out of a file, and makes an ELF file in memory that has this section alone:
 *
 *	ELF header | the section, decompressed | section names | section headers: none, the section, the names
 */
#ifndef SAMPLER_UNWIND_CFI_EXTRACT_H
#define SAMPLER_UNWIND_CFI_EXTRACT_H

#include "sampler/unwind/module_file.h"

#include <stddef.h>
#include <stdint.h>

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
