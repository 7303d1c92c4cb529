/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/units.h"

#include "pprof/table/array.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	UNITS_MAX = 1 << 20,
	RANGES_MAX = 1 << 24, /* of all units together: range lists can be shared by hostile units */
};

struct assignment {
	const struct extents *extents;
	const uint64_t *vaddrs;
	size_t n;
	Dwarf_Off *unit_offsets;
	uint64_t *widths; /* of the range to which vaddrs[i] was assigned */
	size_t ranges_left;
};

static void assign_range(struct assignment *assignment, Dwarf_Off unit, uint64_t start, uint64_t end)
{
	size_t i;

	/* Discarded functions keep their ranges, at address 0 or 1. */
	if (end <= start || extents_end(assignment->extents, start) == 0)
		return;
	for (i = array_lower_bound(assignment->vaddrs, assignment->n, sizeof(start), 0, start);
	     i < assignment->n && assignment->vaddrs[i] < end; i++) {
		if (assignment->unit_offsets[i] && assignment->widths[i] <= end - start)
			continue;
		assignment->unit_offsets[i] = unit;
		assignment->widths[i] = end - start;
	}
}

static void assign_unit(struct assignment *assignment, Dwarf_Die *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;

	while (assignment->ranges_left > 0 && (next = dwarf_ranges(unit, next, &base, &start, &end)) > 0) {
		assignment->ranges_left--;
		assign_range(assignment, dwarf_dieoffset(unit), start, end);
	}
}

/* clang's skeletons may have the inlined calls themselves. */
bool unit_is_split(Dwarf_Die *unit)
{
	return (dwarf_hasattr(unit, DW_AT_dwo_name) || dwarf_hasattr(unit, DW_AT_GNU_dwo_name)) &&
	    dwarf_haschildren(unit) != 1;
}

int units_assign(Dwarf *dwarf, const struct extents *extents, const uint64_t *vaddrs, size_t n,
    Dwarf_Off *unit_offsets, struct unit_facts *facts)
{
	struct assignment assignment = {
	    extents, vaddrs, n, unit_offsets, calloc(n, sizeof(uint64_t)), RANGES_MAX};
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;

	if (!assignment.widths)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		unit_offsets[i] = 0;
	*facts = (struct unit_facts){0};
	/*
	 * The last argument stays NULL: a request for split units would make libdw open .dwo paths that the
	 * file chooses.
	 */
	for (size_t i = 0; i < UNITS_MAX && dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL) == 0;
	     i++) {
		if ((type != DW_UT_compile && type != DW_UT_skeleton) ||
		    dwarf_tag(&die) == DW_TAG_partial_unit)
			continue;
		const bool split = unit_is_split(&die);

		facts->any = true;
		if (split && !facts->split)
			facts->split = dwarf_dieoffset(&die);
		facts->any_inlines |= !split;
		facts->any_lines |= dwarf_hasattr(&die, DW_AT_stmt_list) != 0;
		assign_unit(&assignment, &die);
	}
	free(assignment.widths);
	return 0;
}

/* ---- files and lines of one unit */

void unit_lines_init(struct unit_lines *lines, Dwarf_Die *unit, struct string_pool *names)
{
	Dwarf_Attribute attribute;
	Dwarf_Lines *table;

	*lines = (struct unit_lines){.unit = unit, .names = names};
	lines->folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
	if (dwarf_getsrclines(unit, &table, &lines->line_count) != 0)
		lines->line_count = 0;
	if (dwarf_getsrcfiles(unit, &lines->files, &lines->file_count) != 0)
		lines->files = NULL;
}

/*
 * Removes "." folders and doubled slashes, in place. ".." stays: after a symlink it does not cancel the name
 * before it.
 */
static void squeeze(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		if (from[0] == '/' && from[1] == '/')
			from++;
		else if (from[0] == '/' && from[1] == '.' && from[2] == '/')
			from += 2;
		else
			*to++ = *from++;
	}
	*to = '\0';
}

/* libdw has joined the table's own folders; a path can still be relative to the compilation folder. */
static const char *absolute(struct unit_lines *lines, const char *path)
{
	char joined[PATH_MAX];
	int length;

	if (!path || path[0] == '\0' || strcmp(path, "???") == 0)
		return NULL;
	if (path[0] == '/' || !lines->folder)
		length = snprintf(joined, sizeof(joined), "%s", path);
	else
		length = snprintf(joined, sizeof(joined), "%s/%s", lines->folder, path);
	if (length >= (int)sizeof(joined))
		return NULL;
	squeeze(joined);
	return string_pool_add(lines->names, joined, strlen(joined));
}

void unit_lines_find(struct unit_lines *lines, uint64_t vaddr, const char **file, uint32_t *line)
{
	Dwarf_Line *row = lines->line_count > 0 ? dwarf_getsrc_die(lines->unit, vaddr) : NULL;
	int number = 0;

	*file = NULL;
	*line = 0;
	if (!row)
		return;
	*file = absolute(lines, dwarf_linesrc(row, NULL, NULL));
	if (*file && dwarf_lineno(row, &number) == 0 && number > 0)
		*line = (uint32_t)number;
}

const char *unit_lines_file(struct unit_lines *lines, uint64_t index)
{
	if (!lines->files || index >= lines->file_count)
		return NULL;
	return absolute(lines, dwarf_filesrc(lines->files, index, NULL, NULL));
}

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
