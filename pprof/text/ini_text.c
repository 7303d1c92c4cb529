/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/ini_text.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* libinih's MAX_SECTION and MAX_NAME, which its header does not tell: longer ones are cut. */
enum { NAME_BYTES_MOST = 49 };

struct reading {
	const struct ini_text_reader *reader;
	const char *at; /* the next line */
	int line;       /* number of the one that libinih has */
	bool in_key;    /* an indented line goes on with it */
	int err;
	char error[INI_TEXT_ERROR_BYTES];
};

static const char blanks[] = " \t\r\v\f";

static void fail(struct reading *r, const char *what)
{
	r->err = -EINVAL;
	snprintf(r->error, sizeof(r->error), "%s", what);
}

/* "[SECTION]": libinih tells of it only with its first key. */
static void look_at_section(struct reading *r, const char *line, size_t length)
{
	const char *end = memchr(line, ']', length);
	char section[NAME_BYTES_MOST + 1];
	size_t bytes = end ? (size_t)(end - line) : 0;

	if (!end) {
		fail(r, "a section has no ']'");
	} else if (bytes > NAME_BYTES_MOST) {
		fail(r, "the name of a section has more than 49 bytes");
	} else if (r->reader->section) {
		memcpy(section, line, bytes);
		section[bytes] = '\0';
		r->err = r->reader->section(r->reader->context, section, r->line, r->error);
	}
}

static void look_at_line(struct reading *r, const char *line, size_t length, size_t room)
{
	size_t indent = strspn(line, blanks), name;

	if (length >= room) {
		r->err = -EINVAL;
		snprintf(r->error, sizeof(r->error), "a line has more than %zu bytes", room - 1);
	} else if (indent < length && (!indent || !r->in_key) && line[indent] == '[') {
		r->in_key = false;
		look_at_section(r, line + indent + 1, length - indent - 1);
	} else if (indent < length && (!indent || !r->in_key) && !strchr(";#", line[indent])) {
		r->in_key = true;
		name = strcspn(line + indent, "=:\n");
		while (name && strchr(blanks, line[indent + name - 1]))
			name--;
		if (name > NAME_BYTES_MOST)
			fail(r, "the name of a key has more than 49 bytes");
	}
}

/* The length of the line before " # comment": libinih has that only for ';'. */
static size_t uncommented(const char *line, size_t length)
{
	for (size_t i = 1; i < length; i++)
		if (line[i] == '#' && strchr(blanks, line[i - 1]))
			return i;
	return length;
}

/* libinih's fgets(): a line with its end, and the final 0, in `bytes`. What it gets after an error is
 * empty. */
static char *read_line(char *to, int bytes, void *context)
{
	struct reading *r = context;
	size_t length = strcspn(r->at, "\n");

	if (!*r->at || r->err)
		return NULL;
	r->line++;
	look_at_line(r, r->at, length, (size_t)bytes - 1);
	if (r->err)
		return NULL;
	memcpy(to, r->at, length);
	r->at += length;
	length = uncommented(to, length);
	if (*r->at)
		to[length++] = *r->at++;
	to[length] = '\0';
	return to;
}

static int on_value(void *context, const char *section, const char *name, const char *value)
{
	struct reading *r = context;

	if (!r->err && r->reader->value)
		r->err = r->reader->value(r->reader->context, section, name, value, r->line, r->error);
	return !r->err;
}

int ini_text_parse(
    const struct ini_text_reader *reader, const char *text, const char *name, char *error, size_t error_bytes)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	struct reading r = {.reader = reader, .at = text};
	int line;

	if (strncmp(text, byte_order_mark, strlen(byte_order_mark)) == 0)
		r.at += strlen(byte_order_mark);
	line = ini_parse_stream(read_line, &r, on_value, &r);

	if (!r.err && !line)
		return 0;
	if (line < 0 || r.err == -ENOMEM) {
		snprintf(error, error_bytes, "not enough memory");
		return -ENOMEM;
	}
	if (r.err && (!line || line >= r.line))
		snprintf(error, error_bytes, "%s:%d: %s", name, r.line, r.error);
	else
		snprintf(error, error_bytes, "%s:%d: neither [SECTION] nor KEY = VALUE", name, line);
	return -EINVAL;
}
