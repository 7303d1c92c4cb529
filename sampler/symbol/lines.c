/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/lines.h"

#include <dwarf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void lines_init(struct lines *lines, Dwarf_Die *unit, struct string_pool *names)
{
	Dwarf_Attribute attribute;
	Dwarf_Lines *table;

	*lines = (struct lines){.unit = unit, .names = names};
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
static const char *absolute(struct lines *lines, const char *path)
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

void lines_find(struct lines *lines, uint64_t vaddr, const char **file, uint32_t *line)
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

const char *lines_file(struct lines *lines, uint64_t index)
{
	if (!lines->files || index >= lines->file_count)
		return NULL;
	return absolute(lines, dwarf_filesrc(lines->files, index, NULL, NULL));
}
