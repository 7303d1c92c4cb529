/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/enable_launcher.h"

#include "sampler/enable/unit_preload.h"
#include "sampler/enable/unit_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WANTED_MOST = 64 }; /* more are not named */

const struct launcher *enable_launcher_find(
    const struct root_folder *root, const char *unit, const char *library)
{
	const struct launcher *launcher = NULL;
	struct unit_sources sources;
	struct unit_preload *preload = malloc(sizeof(*preload)); /* large */
	int error = unit_sources_find(&sources, root, unit);

	if (preload && !error && unit_preload_read(preload, root, &sources, library, false) == 0)
		launcher = launcher_of_program(preload->program);
	unit_sources_fini(&sources);
	free(preload);
	return launcher;
}

bool enable_launcher_is_told(
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

	if (enable_launcher_is_told(root, launcher, unit, library))
		return;
	(void)launcher_file(launcher, unit, file);
	launcher_line(library, line);
	printf("%s: the drop-in alone does not reach %s, since %s replaces the environment: "
	       "put %s into %s%s\n",
	    unit, launcher->server, launcher->program, line, root->path, file);
}

/* ---- units that are there for others to belong to */

struct wanted {
	char names[WANTED_MOST][UNIT_NAME_BYTES];
	size_t count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Services alone, each once. */
static int note_wanted(void *context, const char *name)
{
	struct wanted *wanted = context;
	char unit[UNIT_NAME_BYTES];

	if (unit_sources_name(name, unit) != 0 || strcmp(unit, name) != 0 || wanted->count == WANTED_MOST)
		return 0;
	for (size_t i = 0; i < wanted->count; i++)
		if (strcmp(wanted->names[i], unit) == 0)
			return 0;
	strcpy(wanted->names[wanted->count++], unit);
	return 0;
}

/* Links to the instances are made by a generator when a machine starts: an image has the template alone. */
static void find_wanted(struct wanted *wanted, const struct root_folder *root, const char *unit)
{
	char name[UNIT_NAME_BYTES + 1];
	struct unit_sources sources;

	(void)unit_sources_wants(root, unit, note_wanted, wanted);
	if (wanted->count) {
		qsort(wanted->names, wanted->count, sizeof(*wanted->names), by_name);
		return;
	}
	const char *dot = strrchr(unit, '.');
	if (strchr(unit, '@') || !dot ||
	    snprintf(name, sizeof(name), "%.*s@%s", (int)(dot - unit), unit, dot) >= UNIT_NAME_BYTES)
		return;
	if (unit_sources_find(&sources, root, name) == 0)
		(void)note_wanted(wanted, name);
	unit_sources_fini(&sources);
}

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
		const struct launcher *launcher = enable_launcher_find(root, wanted->names[i], library);

		if (launcher)
			say_launcher(root, launcher, wanted->names[i], library);
	}
	free(wanted);
}

void enable_launcher_say(
    const struct root_folder *root, const char *unit, const char *program, const char *library)
{
	const struct launcher *launcher = launcher_of_program(program);

	if (launcher)
		say_launcher(root, launcher, unit, library);
	else if (launcher_is_idle(program))
		say_idle(root, unit, program, library);
}
