/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/json.h"

#include <inttypes.h>
#include <math.h>

#include "pprof/text/utf8.h"

/* The code point of a control character; bytes: its length as utf8_control() gives it. */
static unsigned int control_code(const unsigned char *at, size_t bytes)
{
	if (bytes == 1)
		return at[0];
	return bytes == 2 ? at[1] : 0x2000u | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
}

static void write_quoted(FILE *out, const char *text)
{
	putc('"', out);
	while (*text && !ferror(out)) {
		size_t control = *text == '<' ? 1 : utf8_control(text);

		if (control) {
			fprintf(out, "\\u%04x", control_code((const unsigned char *)text, control));
			text += control;
			continue;
		}
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		text = utf8_put(out, text, '?');
	}
	putc('"', out);
}

/* Writes what comes before a value: comma, line break, key. */
static void begin_value(struct json *json, const char *key, bool nested)
{
	bool in_array = json->arrays >> json->depth & 1;

	if (json->filled)
		putc(',', json->out);
	if (json->depth && !json->lines && (in_array ? nested : json->depth == 1 && json->filled))
		putc('\n', json->out);
	if (key) {
		write_quoted(json->out, key);
		putc(':', json->out);
	}
	json->filled = true;
}

static void open_value(struct json *json, const char *key, bool array)
{
	begin_value(json, key, true);
	putc(array ? '[' : '{', json->out);
	json->depth++;
	json->arrays = array ? json->arrays | 1u << json->depth : json->arrays & ~(1u << json->depth);
	json->filled = false;
}

void json_object(struct json *json, const char *key)
{
	open_value(json, key, false);
}

void json_array(struct json *json, const char *key)
{
	open_value(json, key, true);
}

void json_end(struct json *json)
{
	putc(json->arrays >> json->depth & 1 ? ']' : '}', json->out);
	json->depth--;
	json->filled = json->depth > 0;
	if (!json->depth)
		putc('\n', json->out);
}

void json_text(struct json *json, const char *key, const char *text)
{
	begin_value(json, key, false);
	write_quoted(json->out, text);
}

void json_integer(struct json *json, const char *key, int64_t number)
{
	begin_value(json, key, false);
	fprintf(json->out, "%" PRId64, number);
}

void json_boolean(struct json *json, const char *key, bool is)
{
	begin_value(json, key, false);
	fputs(is ? "true" : "false", json->out);
}

void json_number(struct json *json, const char *key, double number, int decimals)
{
	begin_value(json, key, false);
	if (isfinite(number))
		fprintf(json->out, "%.*f", decimals, number);
	else
		fputs("null", json->out);
}
