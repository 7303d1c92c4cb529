/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/launcher.h"

#include "sampler/enable/unit_file.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define VARIABLE           "LD_PRELOAD"

enum { PART_BYTES = 200 };

static const struct launcher launchers[] = {
    {"pg_ctlcluster", "postgres", "/etc/postgresql", "environment", "VERSION/CLUSTER"},
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const struct launcher *launcher_of_program(const char *path)
{
	for (size_t i = 0; i < ARRAY_COUNT(launchers); i++)
		if (strcmp(launchers[i].program, last_part(path)) == 0)
			return &launchers[i];
	return NULL;
}

const struct launcher *launcher_of_server(const char *comm)
{
	for (size_t i = 0; i < ARRAY_COUNT(launchers); i++)
		if (strcmp(launchers[i].server, comm) == 0)
			return &launchers[i];
	return NULL;
}

/* With systemd's escapes undone, "\x2d" is "-". False: that is no name of a folder, or one that a terminal
 * should not get. */
static bool read_part(const char *text, char part[PART_BYTES])
{
	const char *at = text;

	if (unit_file_word(&at, part, PART_BYTES) != 1 || *at || !*part || *part == '.')
		return false;
	for (const char *c = part; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '/')
			return false;
	return true;
}

/* "15" and "main" of "postgresql@15-main.service": the first '-' separates, as pg_ctlcluster reads it. */
static bool read_instance(const char *unit, char version[PART_BYTES], char cluster[PART_BYTES])
{
	char instance[PART_BYTES];
	const char *at = strchr(unit, '@'), *end = strrchr(unit, '.');

	if (!at || !end || end < at || end - at > (ptrdiff_t)sizeof(instance))
		return false;
	snprintf(instance, sizeof(instance), "%.*s", (int)(end - at - 1), at + 1);
	char *dash = strchr(instance, '-');
	if (!dash)
		return false;
	*dash = '\0';
	return read_part(instance, version) && read_part(dash + 1, cluster);
}

bool launcher_file(const struct launcher *launcher, const char *unit, char file[LAUNCHER_FILE_BYTES])
{
	char version[PART_BYTES], cluster[PART_BYTES];
	const bool known = read_instance(unit, version, cluster);

	if (known)
		snprintf(file, LAUNCHER_FILE_BYTES, "%s/%s/%s/%s", launcher->folder, version, cluster,
		    launcher->file);
	else
		snprintf(file, LAUNCHER_FILE_BYTES, "%s/%s/%s", launcher->folder, launcher->unknown,
		    launcher->file);
	return known;
}

void launcher_line(const char *library, char line[LAUNCHER_LINE_BYTES])
{
	snprintf(line, LAUNCHER_LINE_BYTES, VARIABLE " = '%s'", library);
}

bool launcher_text_has(const char *text, const char *library)
{
	const size_t library_length = strlen(library);
	bool has = false;

	for (size_t length; *text; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		const char *at = text + strspn(text, " \t"), *end = text + length;
		if (strncmp(at, VARIABLE, strlen(VARIABLE)) != 0)
			continue;
		at += strlen(VARIABLE);
		at += strspn(at, " \t=");
		if (*at != '\'')
			continue;
		/* The last one counts, and there the first library. */
		at++;
		has = at + library_length < end && memcmp(at, library, library_length) == 0 &&
		    strchr("': ", at[library_length]);
	}
	return has;
}

bool launcher_is_idle(const char *path)
{
	return strcmp(last_part(path), "true") == 0;
}
