/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the symbols and DWARF of a file are: in separate debug files, in sections that libdw cannot read, and
 * in files of split debug info.
 *
 * Separate debug files have what a distribution strips from a program. They are looked for in gdb's order: by
 * build id (ROOT/.build-id/xx/yyyy.debug), then by the name in .gnu_debuglink beside the file, in .debug/
 * beside it, and under ROOT. A candidate must have the same build id or, if the program has none, the CRC-32
 * that the link gives. debuginfod servers are asked only on request.
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

/*
 * ---- compressed sections
 *
 * Debug sections may be compressed by zstd (objcopy --compress-debug-sections=zstd, rustc, clang 17), which
 * libdw reads only since 0.189 and only if it was built with zstd. They are decompressed before libdw sees
 * the file, in memory only. The files are hostile: the process' limit bounds the memory, and each section has
 * exactly the size that its header gives, or stays as it is.
 */
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

/*
 * ---- split debug info
 *
 * A unit of the program (a skeleton) has lines and addresses, and the unit's functions and
 * inlined calls are in a file of their own (.dwo). libdw opens that file itself, by the path that the program
 * names, and the confined process may open nothing. So the call is trapped, and the trap's handler asks for
 * the file as for any debug file (struct debuginfo_files).
 *
 *	libdw: openat("unit.dwo") --SIGSYS--> "/where/the/program/is/unit.dwo" --> the sampler --> descriptor
 *
 * libdw takes the file only if it has the unit's number. libdw 0.188 knows no .dwp.
 */
enum { SPLIT_FILES_MAX = 1024 }; /* that are asked for, of one program */

/* Call it in a forked child, before confinement_enter(). Where calls cannot be trapped, no split file is
 * looked for. */
void split_files_prepare(void);

/* From now on files are opened: where the program names them, else in the folder of PATH, the program. Both
 * pointers are borrowed. */
void split_files_begin(const struct debuginfo_files *files, const char *path);

/* Finds the split unit of UNIT, a skeleton. False if there is none. */
bool split_files_find(Dwarf_Die *unit, Dwarf_Die *split);

#endif
