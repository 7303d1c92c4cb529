/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files and lines of one compilation unit.
 *
 * libdw decodes a unit's whole line table at the first lookup and keeps it until dwarf_end(): about 16 bytes
 * of memory per byte of .debug_line. From line_count the caller knows when to end the Dwarf.
 */
#ifndef SAMPLER_SYMBOL_LINES_H
#define SAMPLER_SYMBOL_LINES_H

#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "sampler/symbol/string_pool.h"

struct lines {
	Dwarf_Die *unit;           /* borrowed */
	struct string_pool *names; /* borrowed; owns the file names */
	const char *folder;        /* DW_AT_comp_dir or NULL */
	Dwarf_Files *files;        /* NULL: no line table */
	size_t file_count;
	size_t line_count;
};

void lines_init(struct lines *lines, Dwarf_Die *unit, struct string_pool *names);

/* Writes file (NULL: unknown) and line (0: unknown) of an address. */
void lines_find(struct lines *lines, uint64_t vaddr, const char **file, uint32_t *line);

/* The name of file number `index`, as DW_AT_call_file uses it; NULL: there is none. */
const char *lines_file(struct lines *lines, uint64_t index);

#endif
