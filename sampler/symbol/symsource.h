/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF file and its separate debug file, opened for one batch of addresses.
 *
 * The addresses must be sorted and without duplicates. They are resolved unit by unit, so that each unit's
 * DIEs and lines are read once, and libdw's memory can be freed between units.
 */
#ifndef SAMPLER_SYMBOL_SYMSOURCE_H
#define SAMPLER_SYMBOL_SYMSOURCE_H

#include "sampler/symbol/answer.h"
#include "sampler/symbol/debuginfo.h"
#include "sampler/symbol/string_pool.h"
#include "sampler/symbol/symtab.h"

struct symsource {
	const struct symbol_file *file;
	const struct symbol_options *options;
	const struct debuginfo_files *files;
	struct string_pool *names;
	Elf *elf;
	int debug_fd; /* -1: no separate debug file */
	Elf *debug_elf;
	struct extents extents;
	struct symtab *symtab;
	struct Dwfl *minidebug; /* owns the names from .gnu_debugdata */
	struct debuginfo_alternate alternate;
	struct zstd_sections unpacked; /* of the file that has the DWARF */
	Dwarf *dwarf;
	size_t dwarf_lines; /* decoded and still in memory */
	struct symbol_facts facts;
};

/*
 * Opens the file and looks for its debug file, but reads neither tables nor DWARF yet. Borrows all pointers.
 * Returns 0, or -ENOEXEC if it is not ELF. Call symsource_close() in both cases.
 */
int symsource_open(struct symsource *source, const struct symbol_file *file,
    const struct symbol_options *options, const struct debuginfo_files *files, struct string_pool *names);
void symsource_close(struct symsource *source);

/* A number that changes with the files and options on which answers depend, for the disk cache. */
uint64_t symsource_id(const struct symsource *source);

/* Fills in results; a result without frames is unknown. Returns 0 or -ENOMEM. */
int symsource_resolve(
    struct symsource *source, const uint64_t *vaddrs, size_t n, struct symbol_result *results);

#endif
