/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Separate debug files: the symbols and DWARF that a distribution strips from a program.
 *
 * Looked for in gdb's order: by build id (ROOT/.build-id/xx/yyyy.debug), then by the name in .gnu_debuglink
 * beside the file, in .debug/ beside it, and under ROOT. A candidate must have the same build id or, if the
 * program has none, the CRC-32 that the link gives. debuginfod servers are asked only on request.
 */
#ifndef SAMPLER_SYMBOL_DEBUGINFO_H
#define SAMPLER_SYMBOL_DEBUGINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>
#include <libelf.h>

#define DEBUGINFO_ROOT "/usr/lib/debug"

/* Opens files on behalf of a process that may not. `open` opens a regular file, `fetch` asks debuginfod; the
 * caller verifies the file. Both return a descriptor or -errno. */
struct debuginfo_files {
	int (*open)(void *context, const char *path);
	int (*fetch)(void *context, const uint8_t *build_id, size_t build_id_bytes);
	void *context;
};

struct debuginfo_query {
	Elf *elf;         /* the stripped file */
	const char *path; /* of the stripped file; debug files may be beside it */
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: none */
	const char *root;
	bool debuginfod;
	const struct debuginfo_files *files; /* NULL: this process itself */
};

/* A descriptor of the verified debug file, or -ENOENT. */
int debuginfo_open(const struct debuginfo_query *query);

/*
 * DWARF that dwz moved into a file shared by several debug files (DW_FORM_GNU_ref_alt, DW_FORM_GNU_strp_alt).
 * libdw would open any path that the hostile file names; so it is always given an alternate: the verified
 * one, or an empty file in which every reference fails.
 */
struct debuginfo_alternate {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
};

/* `path`: the file from which `dwarf` was read. */
void debuginfo_alternate_init(struct debuginfo_alternate *alternate, Dwarf *dwarf, const char *path,
    const char *root, const struct debuginfo_files *files);

/* After dwarf_end() of the Dwarf that uses it. */
void debuginfo_alternate_fini(struct debuginfo_alternate *alternate);

/*
 * Hides the sections that we do not use, in memory only. Call it before dwarf_begin_elf(): libdw decompresses
 * every section that it knows, also those with locations of variables or macros. In the C library's debug
 * file these sections take a sixth of 50 ms.
 */
void debuginfo_hide_unused(Elf *elf);

#endif
