/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON (RFC 8259): commas, quotes and escapes are right whatever the values are.
 *
 *	struct json json = {.out = out};
 *	json_object(&json, NULL);
 *	json_text(&json, "name", name);
 *	json_array(&json, "sizes");
 *	json_integer(&json, NULL, 42);
 *	json_end(&json);
 *	json_end(&json);
 *
 * A key is NULL in an array and for the outermost value. Text is valid UTF-8 and may contain names from
 * anywhere. Characters that are unsafe on a terminal are escaped, and '<' too, so that the same text can be
 * embedded in the script of an HTML page. Members of the outermost object, and objects and arrays in an
 * array, begin on a new line, so that large files have lines.
 */
#ifndef PPROF_TEXT_JSON_H
#define PPROF_TEXT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool lines;         /* JSON lines: each outermost value is one line */
	unsigned int depth; /* number of open objects and arrays, 32 at most */
	uint32_t arrays;    /* a bit per depth: 1 for an array, 0 for an object */
	bool filled;        /* the innermost open object or array has a value already */
};

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);

/* Ends the object or array that was begun last. */
void json_end(struct json *json);

void json_text(struct json *json, const char *key, const char *text);
void json_integer(struct json *json, const char *key, int64_t number);
void json_boolean(struct json *json, const char *key, bool is);

/* With that many decimals; null for infinity and NaN, which JSON does not have. */
void json_number(struct json *json, const char *key, double number, int decimals);

#endif
