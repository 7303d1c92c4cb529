/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/scopes.h"

#include <dwarf.h>
#include <string.h>

enum {
	WORK_MAX = 20000000, /* DIEs read for one unit's names */
	DEPTH_MAX = 192,
	LINKS_MAX = 16,
	LANG_C_PLUS_PLUS_17 =
	    0x2a, /* DWARF 6 numbers that compilers write already; dwarf.h 0.188 has no names */
	LANG_C_PLUS_PLUS_20 = 0x2b,
	LANG_C17 = 0x2c,
};

void scopes_init(struct scopes *scopes, Dwarf_Die *unit)
{
	*scopes = (struct scopes){.work_left = WORK_MAX};
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case LANG_C_PLUS_PLUS_17:
	case LANG_C_PLUS_PLUS_20:
	case DW_LANG_ObjC_plus_plus:
	case DW_LANG_Rust:
	case DW_LANG_D:
		scopes->qualified = true;
		scopes->linker_names = true;
		break;
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case LANG_C17:
	case DW_LANG_ObjC:
	case DW_LANG_Mips_Assembler:
		scopes->linker_names = true;
		break;
	default:
		break;
	}
}

Dwarf_Die scopes_declaration(const Dwarf_Die *die)
{
	Dwarf_Die at = *die;

	for (int i = 0; i < LINKS_MAX; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Die next;

		if (!dwarf_attr(&at, DW_AT_abstract_origin, &attribute) &&
		    !dwarf_attr(&at, DW_AT_specification, &attribute))
			break;
		if (!dwarf_formref_die(&attribute, &next))
			break;
		at = next;
	}
	return at;
}

/* Moves die to the child that is the target or contains it: the last one that does not begin after it. */
static bool descend(struct scopes *scopes, Dwarf_Die *die, Dwarf_Off target)
{
	Dwarf_Die child, found;
	Dwarf_Off offset = 0;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		if (dwarf_dieoffset(&child) <= offset || dwarf_dieoffset(&child) > target)
			break;
		if (scopes->work_left == 0)
			return false;
		scopes->work_left--;
		offset = dwarf_dieoffset(&child);
		found = child;
	} while (dwarf_siblingof(&child, &child) == 0);
	if (offset == 0)
		return false;
	*die = found;
	return true;
}

static const char *scope_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return name ? name : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return name ? name : "(anonymous)";
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
	case DW_TAG_module:
	case DW_TAG_subprogram:
		return name;
	default:
		return NULL;
	}
}

bool scopes_find(struct scopes *scopes, Dwarf_Die *declaration, char name[SCOPES_NAME_MAX])
{
	Dwarf_Off target = dwarf_dieoffset(declaration);
	size_t length = 0;
	Dwarf_Die at;

	if (!dwarf_diecu(declaration, &at, NULL, NULL))
		return false;
	for (int depth = 0; depth < DEPTH_MAX && descend(scopes, &at, target); depth++) {
		const char *scope = scope_name(&at);
		size_t scope_length = scope ? strlen(scope) : 0;
		bool last = dwarf_dieoffset(&at) == target;

		if (last && scope_length == 0)
			return false;
		if (scope_length + 3 > SCOPES_NAME_MAX - length)
			return false;
		if (scope_length > 0) {
			memcpy(name + length, scope, scope_length);
			memcpy(name + length + scope_length, "::", 3);
			length += scope_length + 2;
		}
		if (last) {
			name[length - 2] = '\0';
			return true;
		}
	}
	return false;
}

const char **scopes_memo(struct scopes *scopes, Dwarf_Die *declaration)
{
	Dwarf_Off offset = dwarf_dieoffset(declaration);
	size_t at = (offset * 0x9e3779b97f4a7c15ull) >> 56;

	if (scopes->memo[at].offset != offset) {
		scopes->memo[at].offset = offset;
		scopes->memo[at].name = NULL;
	}
	return &scopes->memo[at].name;
}
