/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug sections that are compressed by zstd (objcopy --compress-debug-sections=zstd, rustc, clang 17), which
 * libdw reads only since 0.189 and only if it was built with zstd. They are decompressed before libdw sees
 * the file, in memory only. The files are hostile: the process' limit bounds the memory, and each section has
 * exactly the size that its header gives, or stays as it is.
 */
#ifndef SAMPLER_SYMBOL_ZSTD_SECTIONS_H
#define SAMPLER_SYMBOL_ZSTD_SECTIONS_H

#include <libelf.h>

enum { ZSTD_SECTIONS_MAX = 64 };

/* The memory of one file's decompressed sections. */
struct zstd_sections {
	void *plain[ZSTD_SECTIONS_MAX];
	unsigned count;
};

/* Call it once for a file, before dwarf_begin_elf() and after debuginfo_hide_unused(). `sections` begins as
 * zeros. */
void zstd_sections_open(struct zstd_sections *sections, Elf *elf);

/* Call it after elf_end(). */
void zstd_sections_close(struct zstd_sections *sections);

#endif
