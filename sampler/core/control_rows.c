/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_rows.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The next string. "" at the end of a record, NULL at the end of the text. */
static const char *next_string(struct control_rows *rows)
{
	const char *string = rows->at;
	const char *nul = string < rows->end ? memchr(string, '\0', (size_t)(rows->end - string)) : NULL;

	if (nul)
		rows->at = nul + 1;
	return nul ? string : NULL;
}

/* Parses a pid as a writer writes it. 0 for anything that two readers could read in two ways. */
static pid_t pid_of(const char *value)
{
	const size_t digits = strspn(value, "0123456789");
	const long pid = digits && digits <= 10 && !value[digits] ? strtol(value, NULL, 10) : 0;

	return pid <= INT_MAX ? (pid_t)pid : 0;
}

/* The value if the string has this key, else NULL. */
static const char *value_of(const char *string, const char *key)
{
	const size_t length = strlen(key);

	return strncmp(string, key, length) == 0 && string[length] == '=' ? string + length + 1 : NULL;
}

struct control_store control_rows_store(const struct control_rows *rows)
{
	struct control_rows left = *rows;
	struct control_store store = {.path = ""};
	const char *string = next_string(&left), *value;

	if (!string || strcmp(string, "daemon") != 0)
		return store;
	while ((string = next_string(&left)) && *string) {
		if ((value = value_of(string, "store")))
			store.path = value;
		else if ((value = value_of(string, "store_depth")))
			store.depth = (unsigned int)strtoul(value, NULL, 10);
		else if ((value = value_of(string, "store_since")))
			store.since_unix_ns = strtoll(value, NULL, 10);
	}
	return store;
}

int control_rows_next(struct control_rows *rows, struct control_row *row)
{
	const char *name, *string;

	while ((name = next_string(rows))) {
		unsigned int said = 0;

		*row = (struct control_row){.text = name};
		for (string = name; string && *string; string = next_string(rows)) {
			if (strncmp(string, "pid=", 4) != 0)
				continue;
			row->pid = said++ ? 0 : pid_of(string + 4);
		}
		if (!string)
			return 0;
		row->bytes = (size_t)(rows->at - name);
		if (strcmp(name, "process") == 0)
			return 1;
	}
	return 0;
}
