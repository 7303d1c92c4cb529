/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/enable/launcher.h"

#include "pprof/table/array.h"
#include "sampler/cmd/enable/unit.h"
#include "sampler/cmd/enable/unit_file.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "LD_PRELOAD"

enum { PART_BYTES = 200, WANTED_MOST = 64 /* more are not named */ };

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

/* Undoes systemd's escapes: "\x2d" is "-". False: that is not a folder's name, or it has a character that a
 * terminal should not get. */
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

/* ---- of a unit */

const struct launcher *launcher_of_unit(const struct root_folder *root, const char *name, const char *library)
{
	struct unit *unit = malloc(sizeof(*unit)); /* large */
	const struct launcher *launcher = NULL;

	if (unit && unit_read(unit, root, name, library, false) == 0)
		launcher = launcher_of_program(unit->program);
	free(unit);
	return launcher;
}

bool launcher_is_told(
    const struct root_folder *root, const struct launcher *launcher, const char *unit, const char *library)
{
	char file[LAUNCHER_FILE_BYTES], *text;
	size_t length;

	if (!launcher_file(launcher, unit, file) || root_folder_read(root, file, &text, &length) != 0)
		return false;
	const bool told = launcher_text_has(text, library);
	free(text);
	return told;
}

static void say_launcher(
    const struct root_folder *root, const struct launcher *launcher, const char *unit, const char *library)
{
	char file[LAUNCHER_FILE_BYTES], line[LAUNCHER_LINE_BYTES];

	if (launcher_is_told(root, launcher, unit, library))
		return;
	(void)launcher_file(launcher, unit, file);
	launcher_line(library, line);
	printf("%s: the drop-in alone does not reach %s, since %s replaces the environment: "
	       "put %s into %s%s\n",
	    unit, launcher->server, launcher->program, line, root->path, file);
}

struct wanted {
	char names[WANTED_MOST][UNIT_NAME_BYTES];
	size_t count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Only services, each once. */
static int note_wanted(void *context, const char *name)
{
	struct wanted *wanted = context;
	char unit[UNIT_NAME_BYTES];

	if (unit_name(name, unit) != 0 || strcmp(unit, name) != 0 || wanted->count == WANTED_MOST)
		return 0;
	for (size_t i = 0; i < wanted->count; i++)
		if (strcmp(wanted->names[i], unit) == 0)
			return 0;
	strcpy(wanted->names[wanted->count++], unit);
	return 0;
}

/* A generator makes the links to the instances when a machine starts. In an image only the template is. */
static void find_wanted(struct wanted *wanted, const struct root_folder *root, const char *name)
{
	const int stem = (int)(strrchr(name, '.') - name);
	char template[UNIT_NAME_BYTES + 1];
	struct unit *unit = malloc(sizeof(*unit));

	(void)unit_wants(root, name, note_wanted, wanted);
	snprintf(template, sizeof(template), "%.*s@%s", stem, name, name + stem);
	if (wanted->count)
		qsort(wanted->names, wanted->count, sizeof(*wanted->names), by_name);
	else if (unit && !strchr(name, '@') && unit_read(unit, root, template, "", false) == 0)
		(void)note_wanted(wanted, template);
	free(unit);
}

/* A unit that does nothing is there for others to belong to. */
static void say_idle(
    const struct root_folder *root, const char *unit, const char *program, const char *library)
{
	struct wanted *wanted = calloc(1, sizeof(*wanted));

	if (!wanted)
		return;
	find_wanted(wanted, root, unit);
	printf(
	    "%s: it executes nothing but %s, and what it starts is enabled by its own name", unit, program);
	for (size_t i = 0; i < wanted->count; i++)
		printf("%s %s", i ? "" : ":", wanted->names[i]);
	putchar('\n');
	for (size_t i = 0; i < wanted->count; i++) {
		const struct launcher *launcher = launcher_of_unit(root, wanted->names[i], library);

		if (launcher)
			say_launcher(root, launcher, wanted->names[i], library);
	}
	free(wanted);
}

void launcher_say(const struct root_folder *root, const char *unit, const char *program, const char *library)
{
	const struct launcher *launcher = launcher_of_program(program);

	if (launcher)
		say_launcher(root, launcher, unit, library);
	else if (launcher_is_idle(program))
		say_idle(root, unit, program, library);
}
