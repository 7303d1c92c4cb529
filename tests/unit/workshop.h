/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that need files made by real tools: a temporary folder and a way to run commands in it.
 */
#ifndef TESTS_UNIT_WORKSHOP_H
#define TESTS_UNIT_WORKSHOP_H

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct workshop {
	char folder[64];
};

/* Runs a shell command in the folder, output to ./log. 0: it succeeded. */
__attribute__((format(printf, 2, 3))) static inline int workshop_run(
    const struct workshop *shop, const char *format, ...)
{
	char command[8192];
	int length =
	    snprintf(command, sizeof(command), "cd %s && exec >>log 2>&1 </dev/null; ", shop->folder);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command + length, sizeof(command) - (size_t)length, format, arguments);
	va_end(arguments);
	return system(command);
}

static inline bool workshop_has(const char *tool)
{
	char command[256];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", tool);
	return system(command) == 0;
}

/* One of a few static buffers: the absolute path of a file in the folder. */
static inline const char *workshop_path(const struct workshop *shop, const char *name)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", shop->folder, name);
	return path;
}

static inline bool workshop_write(const struct workshop *shop, const char *name, const char *text)
{
	FILE *file = fopen(workshop_path(shop, name), "w");

	return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* cmocka group fixtures. */
static inline int workshop_open(void **state)
{
	struct workshop *shop = calloc(1, sizeof(*shop));

	if (!shop)
		return -1;
	strcpy(shop->folder, "/tmp/heaptap-unit.XXXXXX");
	*state = shop;
	return mkdtemp(shop->folder) ? 0 : -1;
}

static inline int workshop_close(void **state)
{
	struct workshop *shop = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", shop->folder);
	free(shop);
	return system(command);
}

#endif
