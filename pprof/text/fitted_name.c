/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/fitted_name.h"

#include "pprof/text/text.h"
#include "pprof/text/utf8.h"

#include <stdbool.h>
#include <string.h>

/* In valid UTF-8 every byte except a continuation byte begins a character. */
static bool is_start(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

static size_t columns_in(const char *text, size_t bytes)
{
	size_t columns = 0;

	for (size_t i = 0; i < bytes; i++)
		columns += is_start(text[i]);
	return columns;
}

static size_t columns_of(const char *text)
{
	return columns_in(text, strlen(text));
}

/* Bytes of the first characters, or from the last ones on. */
static size_t head_bytes(const char *text, size_t columns)
{
	size_t at = 0;

	while (text[at] && (columns || !is_start(text[at]))) {
		columns -= is_start(text[at]);
		at++;
	}
	return at;
}

static const char *tail_of(const char *text, size_t columns)
{
	return text + head_bytes(text, columns_of(text) - columns);
}

/* Where the file name begins, after ':' or ' '. NULL if the name has none. */
static const char *file_of(const char *name)
{
	const char *slash = strchr(name, '/'), *frozen = strstr(name, ":<"), *from = slash;

	if (frozen && (!slash || frozen < slash))
		return frozen > name && frozen[-1] != ':' ? frozen + 1 : NULL;
	if (!slash || !slash[1] || strstr(name, "operator/"))
		return NULL;
	while (from > name && from[-1] != ':' && from[-1] != ' ')
		from--;
	return from > name ? from : NULL;
}

struct fitting {
	const char *name, *dots;
	size_t columns, dots_columns;
	char *text;
	size_t text_bytes;
};

static void put(const struct fitting *fitting, const char *head, size_t bytes, const char *tail)
{
	text_append(fitting->text, fitting->text_bytes, "%.*s%s%s", (int)bytes, head, fitting->dots, tail);
}

/* "py::f:" and as many folders as fit, or as much of the file's name. */
static bool fit_file(const struct fitting *fitting)
{
	enum { TELLING_COLUMNS = 4 }; /* of the file's name, at least */
	const char *file = file_of(fitting->name);
	const size_t bytes = file ? (size_t)(file - fitting->name) : 0;
	const size_t taken = columns_in(fitting->name, bytes) + fitting->dots_columns;

	if (!file || taken + TELLING_COLUMNS > fitting->columns)
		return false;
	const size_t room = fitting->columns - taken;
	const char *tail = file;

	while (tail && columns_of(tail) > room)
		tail = strchr(tail + 1, '/');
	put(fitting, fitting->name, bytes, tail ? tail : tail_of(file, room));
	return true;
}

static bool fit_scopes(const struct fitting *fitting)
{
	const size_t room = fitting->columns - fitting->dots_columns;

	for (const char *at = fitting->name; (at = strstr(at, "::"));) {
		at += 2;
		if (columns_of(at) > room)
			continue;
		put(fitting, "", 0, at);
		return true;
	}
	return false;
}

static void fit_middle(const struct fitting *fitting)
{
	const size_t rest = fitting->columns - fitting->dots_columns, head = rest / 2;

	put(fitting, fitting->name, head_bytes(fitting->name, head), tail_of(fitting->name, rest - head));
}

void fitted_name(const char *name, size_t columns, const char *dots, char *text, size_t text_bytes)
{
	const struct fitting fitting = {name, dots, columns, columns_of(dots), text, text_bytes};

	if (!text_bytes)
		return;
	text[0] = '\0';
	if (columns_of(name) <= columns)
		text_append(text, text_bytes, "%s", name);
	else if (columns < fitting.dots_columns)
		text_append(text, text_bytes, "%.*s", (int)head_bytes(name, columns), name);
	else if (!fit_file(&fitting) && !fit_scopes(&fitting))
		fit_middle(&fitting);
	text[utf8_valid_prefix(text, strlen(text))] = '\0'; /* it may be cut */
}
