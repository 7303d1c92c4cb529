/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Qualified names from DWARF alone: app::(anonymous namespace)::Pool::Pool.
 *
 * Compilers leave DW_AT_linkage_name out where the linker needs no name, for instance for a constructor in an
 * anonymous namespace. Once such a function is inlined, no symbol table has it either. A DIE has no reference
 * to its parent, so the path to the DIE is searched from the unit's root.
 */
#ifndef SAMPLER_SYMBOL_SCOPES_H
#define SAMPLER_SYMBOL_SCOPES_H

#include <stdbool.h>
#include <stddef.h>

#include <elfutils/libdw.h>

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
