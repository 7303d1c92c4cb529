/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/ini_text.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
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
	/* with reader->fault: */
	bool passes_section; /* that was wrong */
	bool passes_lines;   /* indented ones, behind a line that was wrong */
	bool passes;         /* this line */
	size_t faults;
	const char *name;
	char *first; /* fault, of first_bytes */
	size_t first_bytes;
	int err;
	char error[INI_TEXT_ERROR_BYTES];
};

static const char blanks[] = " \t\r\v\f";

int ini_text_wrong(char error[INI_TEXT_ERROR_BYTES], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, INI_TEXT_ERROR_BYTES, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* Keeps the first fault, and goes on if the reader wants to hear of all. */
static void note_fault(struct reading *r, int line)
{
	char text[INI_TEXT_ERROR_BYTES + 4096 + 16];

	snprintf(text, sizeof(text), "%s:%d: %s", r->name, line, r->error);
	if (!r->faults++)
		snprintf(r->first, r->first_bytes, "%s", text);
	if (!r->reader->fault)
		return;
	r->reader->fault(r->reader->context, text);
	r->err = 0;
}

/* "[SECTION]": libinih tells of it only with its first key. */
static void look_at_section(struct reading *r, const char *line, size_t length)
{
	const char *end = memchr(line, ']', length);
	char section[NAME_BYTES_MOST + 1];
	size_t bytes = end ? (size_t)(end - line) : 0;

	if (!end) {
		r->err = ini_text_wrong(r->error, "a section has no ']'");
	} else if (bytes > NAME_BYTES_MOST) {
		r->err = ini_text_wrong(r->error, "the name of a section has more than 49 bytes");
	} else if (r->reader->section) {
		memcpy(section, line, bytes);
		section[bytes] = '\0';
		r->err = r->reader->section(r->reader->context, section, r->line, r->error);
	}
}

/* in_key is what libinih has: a key without a name is none. A line that libinih would report and pass over
 * ends the reading, so that no value comes in a section that was not told of. */
static void look_at_key(struct reading *r, const char *line, size_t length)
{
	size_t name = 0;

	while (name < length && line[name] != '=' && line[name] != ':')
		name++;
	if (name == length) {
		r->err = ini_text_wrong(r->error, "neither [SECTION] nor KEY = VALUE");
		return;
	}
	while (name && strchr(blanks, line[name - 1]))
		name--;
	r->in_key = name > 0;
	if (name > NAME_BYTES_MOST)
		r->err = ini_text_wrong(r->error, "the name of a key has more than 49 bytes");
}

/* The line has lost its comment. */
static void look_at_line(struct reading *r, const char *line, size_t length)
{
	size_t indent = strspn(line, blanks);

	if (indent >= length || strchr(";#", line[indent]))
		return;
	r->passes = indent && r->passes_lines;
	if (r->passes || (indent && r->in_key))
		return;
	r->passes_lines = false;
	if (line[indent] == '[') {
		r->in_key = false;
		look_at_section(r, line + indent + 1, length - indent - 1);
		r->passes_section = r->err != 0;
	} else if (r->passes_section) {
		r->passes = true;
	} else {
		look_at_key(r, line + indent, length - indent);
	}
}

/* The length of the line before its comment, which begins with one of the marks, after a blank. */
static size_t uncommented(const char *line, size_t length, const char *marks)
{
	for (size_t i = 1; i < length; i++)
		if (strchr(marks, line[i]) && strchr(blanks, line[i - 1]))
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
	r->passes = false;
	if (length >= (size_t)bytes - 1)
		r->err = ini_text_wrong(r->error, "a line has more than %d bytes", bytes - 2);
	else
		look_at_line(r, r->at, uncommented(r->at, length, ";#"));
	if (r->err && r->err != -ENOMEM) {
		note_fault(r, r->line);
		r->passes = r->passes_lines = true;
		r->in_key = false;
	}
	if (r->err)
		return NULL;
	const char *end = r->at + length;
	if (r->passes)
		length = 0;
	memcpy(to, r->at, length);
	r->at = end;
	length = uncommented(to, length, "#"); /* libinih knows only ';' there */
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
	if (r->err && r->err != -ENOMEM)
		note_fault(r, r->line);
	return !r->err;
}

int ini_text_parse(
    const struct ini_text_reader *reader, const char *text, const char *name, char *error, size_t error_bytes)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	struct reading r = {
	    .reader = reader, .at = text, .name = name, .first = error, .first_bytes = error_bytes};
	int line;

	while (strncmp(r.at, byte_order_mark, strlen(byte_order_mark)) == 0) /* libinih passes over one too */
		r.at += strlen(byte_order_mark);
	line = ini_parse_stream(read_line, &r, on_value, &r);

	if (line < 0 || r.err == -ENOMEM) {
		snprintf(error, error_bytes, "not enough memory");
		return -ENOMEM;
	}
	if (line > 0 && !r.faults) { /* what libinih alone finds wrong */
		r.err = ini_text_wrong(r.error, "neither [SECTION] nor KEY = VALUE");
		note_fault(&r, line);
	}
	return r.faults ? -EINVAL : 0;
}
