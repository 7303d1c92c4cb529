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
