/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilation units: which unit an address belongs to, the source files and lines of a unit, and the
 * qualified names of its declarations.
 *
 * units_assign() reads the units' own DW_AT_ranges. libdw 0.188 itself reads only .debug_aranges, a section
 * that clang does not write. All addresses are known in advance, so each range is looked up in the sorted
 * addresses. That needs no index over all units, and no memory per unit.
 *
 * libdw decodes a unit's whole line table at the first lookup and keeps it until dwarf_end(): about 16 bytes
 * of memory per byte of .debug_line. From line_count the caller knows when to end the Dwarf.
 */
#ifndef SAMPLER_SYMBOL_UNITS_H
#define SAMPLER_SYMBOL_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "sampler/symbol/string_pool.h"
#include "sampler/symbol/symtab.h"

struct unit_facts {
	bool any;         /* at least one compilation unit */
	bool any_lines;   /* at least one of them with a line table */
	bool any_inlines; /* at least one of them with DIEs of its functions */
	/* Offset of the first unit whose functions are in a file of its own (.dwo); 0: there is none. */
	Dwarf_Off split;
};

/*
 * vaddrs: n ascending addresses. Sets unit_offsets[i] to the offset of the unit's DIE, or to 0 if no unit has
 * the address. If several units have the address, the unit with the narrowest range wins. Returns 0 or
 * -ENOMEM.
 */
int units_assign(Dwarf *dwarf, const struct extents *extents, const uint64_t *vaddrs, size_t n,
    Dwarf_Off *unit_offsets, struct unit_facts *facts);

/* Are the DIEs of the unit's functions in a file of its own (.dwo)? */
bool unit_is_split(Dwarf_Die *unit);

struct unit_lines {
	Dwarf_Die *unit;           /* borrowed */
	struct string_pool *names; /* borrowed; owns the file names */
	const char *folder;        /* DW_AT_comp_dir or NULL */
	Dwarf_Files *files;        /* NULL: no line table */
	size_t file_count;
	size_t line_count;
};

void unit_lines_init(struct unit_lines *lines, Dwarf_Die *unit, struct string_pool *names);

/* Writes file (NULL: unknown) and line (0: unknown) of an address. */
void unit_lines_find(struct unit_lines *lines, uint64_t vaddr, const char **file, uint32_t *line);

/* The name of file number `index`, as DW_AT_call_file uses it; NULL: there is none. */
const char *unit_lines_file(struct unit_lines *lines, uint64_t index);

/*
 * ---- qualified names from DWARF alone: app::(anonymous namespace)::Pool::Pool.
 *
 * Compilers leave DW_AT_linkage_name out where the linker needs no name, for instance for a constructor in an
 * anonymous namespace. Once such a function is inlined, no symbol table has it either. A DIE has no reference
 * to its parent, so the path to the DIE is searched from the unit's root.
 */
enum { SCOPES_MEMO_COUNT = 256, SCOPES_NAME_MAX = 4096 };

struct scopes {
	bool qualified;    /* does the unit's language have scopes with names? */
	bool linker_names; /* is an unmangled linker symbol the name in the source? (Fortran's foo_ is not) */
	size_t work_left;
	struct {
		Dwarf_Off offset; /* of the declaration; 0: empty */
		const char *name; /* owned by the caller */
	} memo[SCOPES_MEMO_COUNT];
};

void scopes_init(struct scopes *scopes, Dwarf_Die *unit);

/* The first declaration: the end of the chain of abstract origins and specifications. */
Dwarf_Die scopes_declaration(const Dwarf_Die *die);

/* Writes the qualified name of a declaration. False if it is not found or has no name. */
bool scopes_find(struct scopes *scopes, Dwarf_Die *declaration, char name[SCOPES_NAME_MAX]);

/* A place where the caller may keep the name of this declaration. It holds NULL at first. */
const char **scopes_memo(struct scopes *scopes, Dwarf_Die *declaration);

#endif
