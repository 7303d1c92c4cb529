/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/preload_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS ": \t\n"

/* The next entry of a line that ends at a newline or a comment; *at moves behind it. Its length; 0: none is
 * left. */
static size_t next_entry(const char **at, const char *end, const char **entry)
{
	*at += strspn(*at, ": \t");
	if (*at >= end)
		return 0;
	*entry = *at;
	size_t length = strcspn(*at, SEPARATORS "#");
	if (*at + length > end)
		length = (size_t)(end - *at);
	*at += length;
	return length;
}

static bool is_library(const char *entry, size_t length, const char *library)
{
	return length == strlen(library) && memcmp(entry, library, length) == 0;
}

/* Where the entries of a line end: at a comment, or its end. */
static const char *entries_end(const char *line)
{
	return line + strcspn(line, "#\n");
}

enum preload_file_state preload_file_state(const char *text, const char *library)
{
	bool first = true;

	for (const char *line = text; *line;) {
		const char *at = line, *end = entries_end(line), *entry;
		size_t length;

		while ((length = next_entry(&at, end, &entry))) {
			if (is_library(entry, length, library))
				return first ? PRELOAD_FILE_FIRST : PRELOAD_FILE_BEHIND;
			first = false;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return PRELOAD_FILE_ABSENT;
}

/* A line with the library in it, without it; nothing if nothing else is there. Returns the end of what was
 * written. */
static char *copy_others(char *out, const char *line, const char *line_end, const char *library)
{
	const char *at = line, *end = entries_end(line), *entry;
	bool others = false;
	size_t length;

	while ((length = next_entry(&at, end, &entry))) {
		if (is_library(entry, length, library))
			continue;
		if (others)
			*out++ = ' ';
		memcpy(out, entry, length);
		out += length;
		others = true;
	}
	if (!others && *end != '#')
		return out;
	if (others && *end == '#')
		*out++ = ' ';
	memcpy(out, end, (size_t)(line_end - end));
	return out + (line_end - end);
}

static bool has_library(const char *line, const char *library)
{
	const char *at = line, *end = entries_end(line), *entry;
	size_t length;

	while ((length = next_entry(&at, end, &entry)))
		if (is_library(entry, length, library))
			return true;
	return false;
}

/* Lines without it stay as they are, byte for byte. */
char *preload_file_remove(const char *text, const char *library)
{
	char *rest = malloc(strlen(text) + 2), *out = rest;

	if (!rest)
		return NULL;
	for (const char *line = text; *line;) {
		const char *end = line + strcspn(line, "\n");

		end += *end == '\n';
		if (has_library(line, library)) {
			out = copy_others(out, line, end, library);
		} else {
			memcpy(out, line, (size_t)(end - line));
			out += end - line;
		}
		line = end;
	}
	*out = '\0';
	return rest;
}

char *preload_file_add(const char *text, const char *library)
{
	char *rest = preload_file_remove(text, library), *all;

	if (!rest)
		return NULL;
	if (asprintf(&all, "%s\n%s", library, rest) < 0)
		all = NULL;
	free(rest);
	return all;
}
