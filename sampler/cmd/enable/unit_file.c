/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/enable/unit_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

static char *trim(char *text)
{
	text += strspn(text, BLANKS);
	size_t length = strlen(text);
	while (length && strchr(BLANKS, text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

static bool is_comment(const char *line)
{
	line += strspn(line, " \t");
	return *line == '#' || *line == ';';
}

/* Cuts a line off *at, with the lines that continue it, joined by a blank; *number counts all of them.
 * NULL: the end. */
static char *next_line(char **at, unsigned int *number, unsigned int *first)
{
	char *line = *at, *out = line;

	if (!*line)
		return NULL;
	*first = *number + 1;
	for (bool goes_on = true; goes_on && **at;) {
		char *start = *at;
		size_t length = strcspn(start, "\n");

		*at = start + length + (start[length] == '\n');
		++*number;
		/* A comment goes on in no other line, and one between lines that belong together is passed
		 * over. */
		bool comment = is_comment(start);
		if (comment && start != line)
			continue;
		goes_on = !comment && length && start[length - 1] == '\\';
		memmove(out, start, length);
		out += length;
		if (goes_on)
			out[-1] = ' ';
	}
	*out = '\0';
	return line;
}

int unit_file_parse(
    const char *text, void (*visit)(void *context, const struct unit_file_entry *entry), void *context)
{
	struct unit_file_entry entry = {.section = ""};
	unsigned int number = 0;
	char *copy = malloc(strlen(text) + 2), *at = copy, *line;

	if (!copy)
		return -ENOMEM;
	strcpy(copy, text);
	copy[strlen(text) + 1] = '\0';
	while ((line = next_line(&at, &number, &entry.line))) {
		line = trim(line);
		if (!*line || *line == '#' || *line == ';')
			continue;
		size_t length = strlen(line);
		if (*line == '[' && line[length - 1] == ']') {
			line[length - 1] = '\0';
			entry.section = line + 1;
			continue;
		}
		char *equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = '\0';
		entry.key = trim(line);
		entry.value = trim(equals + 1);
		visit(context, &entry);
	}
	free(copy);
	return 0;
}

static int hexadecimal(char digit)
{
	const char *digits = "0123456789abcdef", *found;

	if (!digit)
		return -1;
	found = strchr(digits, digit >= 'A' && digit <= 'F' ? digit - 'A' + 'a' : digit);
	return found ? (int)(found - digits) : -1;
}

/* What follows a backslash, *at on it; it moves to its last character. -1: unknown. */
static int unescape(const char **at)
{
	static const char names[] = "abfnrtvs\\\"'", bytes[] = "\a\b\f\n\r\t\v \\\"'";
	const char *found = **at ? strchr(names, **at) : NULL;

	if (found)
		return (unsigned char)bytes[found - names];
	if (**at != 'x')
		return -1;
	int high = hexadecimal((*at)[1]), low = high < 0 ? -1 : hexadecimal((*at)[2]);
	*at += 2;
	return low < 0 ? -1 : high << 4 | low;
}

int unit_file_word(const char **at, char *word, size_t word_bytes)
{
	size_t length = 0;
	char quote = '\0';
	const char *c = *at + strspn(*at, BLANKS);

	if (!*c)
		return 0;
	for (; *c && (quote || !strchr(BLANKS, *c)); c++) {
		int byte = (unsigned char)*c;

		if (quote ? *c == quote : *c == '"' || *c == '\'') {
			quote = quote ? '\0' : *c;
			continue;
		}
		if (*c == '\\') {
			c++;
			byte = unescape(&c);
		}
		if (byte <= 0 || length + 1 >= word_bytes)
			return -EINVAL;
		word[length++] = (char)byte;
	}
	word[length] = '\0';
	*at = c;
	return quote ? -EINVAL : 1;
}

int unit_file_quote(const char *word, char *text, size_t text_bytes)
{
	size_t length = 0;

	if (text_bytes < 3)
		return -ENAMETOOLONG;
	text[length++] = '"';
	for (; *word; word++) {
		bool escaped = *word == '"' || *word == '\\';

		if (length + escaped + 3 > text_bytes)
			return -ENAMETOOLONG;
		if (escaped)
			text[length++] = '\\';
		text[length++] = *word;
	}
	text[length++] = '"';
	text[length] = '\0';
	return 0;
}
