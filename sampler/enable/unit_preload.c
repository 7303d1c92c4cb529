/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/unit_preload.h"

#include "sampler/enable/unit_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE    "LD_PRELOAD"
#define MARK        "# Written by `heaptap enable`; `heaptap disable` removes it."
#define MARK_FOLDER "# Its folder was made with it."
#define SEPARATORS  ": \t\n"

/* One reading of all sources. */
struct reading {
	struct unit_preload *preload;
	const struct root_folder *root;
	const char *library;
	const char *section; /* which counts */
	const char *path;    /* of the file that is being read */
	bool manager;        /* DefaultEnvironment= */
	bool unset;          /* UnsetEnvironment=, which is done last */
	char unset_where[UNIT_SOURCE_BYTES + 16];
	char files
	    [UNIT_SOURCE_BYTES]; /* EnvironmentFile=, each with its final NUL; an empty one ends the list */
	size_t files_length;
	int error;
};

static void set_value(struct reading *reading, const char *value, unsigned int line)
{
	struct unit_preload *preload = reading->preload;

	if (strlen(value) >= sizeof(preload->value)) {
		reading->error = -ENAMETOOLONG;
		return;
	}
	strcpy(preload->value, value);
	snprintf(preload->where, sizeof(preload->where), "%.4095s:%u", reading->path, line);
}

/* Words NAME=VALUE; none at all takes back what was before. */
static void read_environment(struct reading *reading, const struct unit_file_entry *entry)
{
	const char *at = entry->value;
	char word[UNIT_PRELOAD_BYTES + 32];

	if (!*entry->value)
		set_value(reading, "", entry->line);
	while (unit_file_word(&at, word, sizeof(word)) == 1)
		if (strncmp(word, VARIABLE "=", strlen(VARIABLE) + 1) == 0)
			set_value(reading, word + strlen(VARIABLE) + 1, entry->line);
}

static void read_unset(struct reading *reading, const struct unit_file_entry *entry)
{
	const char *at = entry->value;
	char word[UNIT_PRELOAD_BYTES + 32];

	if (!*entry->value)
		reading->unset = false;
	while (unit_file_word(&at, word, sizeof(word)) == 1)
		if (strcmp(word, VARIABLE) == 0) {
			reading->unset = true;
			snprintf(reading->unset_where, sizeof(reading->unset_where), "%.4095s:%u",
			    reading->path, entry->line);
		}
}

static void note_file(struct reading *reading, const struct unit_file_entry *entry)
{
	size_t length = strlen(entry->value) + 1;

	if (!*entry->value)
		reading->files_length = 0;
	else if (reading->files_length + length < sizeof(reading->files))
		memcpy(reading->files + reading->files_length, entry->value, length);
	if (*entry->value && reading->files_length + length < sizeof(reading->files))
		reading->files_length += length;
	reading->files[reading->files_length] = '\0';
}

/* Without what stands before the path: "-", "@", "+"... The first of several. */
static void note_program(struct unit_preload *preload, const char *value)
{
	if (!*value) {
		preload->program[0] = '\0';
		return;
	}
	value += strspn(value, "@-:+!|");
	if (!*preload->program)
		(void)unit_file_word(&value, preload->program, sizeof(preload->program));
}

static void read_entry(void *context, const struct unit_file_entry *entry)
{
	struct reading *reading = context;
	struct unit_preload *preload = reading->preload;

	if (strcmp(entry->section, reading->section) != 0)
		return;
	if (strcmp(entry->key, reading->manager ? "DefaultEnvironment" : "Environment") == 0)
		read_environment(reading, entry);
	if (reading->manager)
		return;
	if (strcmp(entry->key, "UnsetEnvironment") == 0)
		read_unset(reading, entry);
	if (strcmp(entry->key, "EnvironmentFile") == 0)
		note_file(reading, entry);
	if (strcmp(entry->key, "ExecStart") == 0)
		note_program(preload, entry->value);
	if (strcmp(entry->key, "RootDirectory") == 0 || strcmp(entry->key, "RootImage") == 0)
		snprintf(preload->root_directory, sizeof(preload->root_directory), "%s", entry->value);
}

static void read_text(struct reading *reading, const char *path, const char *text)
{
	int error;

	reading->path = path;
	error = unit_file_parse(text, read_entry, reading);
	if (error)
		reading->error = error;
}

static void read_source(struct reading *reading, const char *path)
{
	char *text;
	size_t length;

	/* A link to /dev/null, or one that has gone: says nothing. */
	if (root_folder_read(reading->root, path, &text, &length) != 0)
		return;
	read_text(reading, path, text);
	free(text);
}

/* Lines NAME=VALUE, a quoted value may be. What is in them goes before Environment=. */
static void read_environment_file(struct reading *reading, const char *path)
{
	char *text, *rest, *line, word[UNIT_PRELOAD_BYTES + 32];
	size_t length;
	unsigned int number = 0;

	if (root_folder_read(reading->root, path, &text, &length) != 0)
		return;
	reading->path = path;
	for (rest = text; (line = strsep(&rest, "\n"));) {
		number++;
		line += strspn(line, " \t");
		if (strncmp(line, VARIABLE "=", strlen(VARIABLE) + 1) != 0)
			continue;
		const char *at = line + strlen(VARIABLE) + 1;
		if (unit_file_word(&at, word, sizeof(word)) == 1)
			set_value(reading, word, number);
		else
			set_value(reading, "", number);
	}
	free(text);
}

/* With % doubled where it is our library's own. */
static void escape_percent(const char *path, char *text, size_t text_bytes)
{
	size_t length = 0;

	for (; *path && length + 3 < text_bytes; path++) {
		if (*path == '%')
			text[length++] = '%';
		text[length++] = *path;
	}
	text[length] = '\0';
}

/* The entries of `value` that are not our library, separated by colons. `escaped`: as a unit file has it. */
static void leave_out(const char *value, const char *library, char *rest, size_t rest_bytes)
{
	char escaped[UNIT_SOURCE_BYTES];
	size_t length = 0;

	escape_percent(library, escaped, sizeof(escaped));
	rest[0] = '\0';
	while (*(value += strspn(value, SEPARATORS))) {
		size_t entry = strcspn(value, SEPARATORS);
		bool ours = (entry == strlen(library) && memcmp(value, library, entry) == 0) ||
		    (entry == strlen(escaped) && memcmp(value, escaped, entry) == 0);

		if (!ours && length + entry + 2 < rest_bytes)
			length += (size_t)snprintf(rest + length, rest_bytes - length, "%s%.*s",
			    length ? ":" : "", (int)entry, value);
		value += entry;
	}
}

static void compose(struct unit_preload *preload, const char *library)
{
	char word[UNIT_PRELOAD_BYTES + UNIT_SOURCE_BYTES + 16], quoted[UNIT_PRELOAD_BYTES + 512];
	char escaped[UNIT_SOURCE_BYTES];

	escape_percent(library, escaped, sizeof(escaped));
	snprintf(
	    word, sizeof(word), VARIABLE "=%s%s%s", escaped, *preload->theirs ? ":" : "", preload->theirs);
	if (unit_file_quote(word, quoted, sizeof(quoted)) == 0)
		snprintf(
		    preload->drop_in, sizeof(preload->drop_in), MARK "\n[Service]\nEnvironment=%s\n", quoted);
}

bool unit_preload_is_ours(const char *text, bool *made_folder)
{
	*made_folder = strstr(text, MARK_FOLDER "\n") != NULL;
	return strncmp(text, MARK "\n", strlen(MARK) + 1) == 0;
}

void unit_preload_mark_folder(struct unit_preload *preload)
{
	char text[sizeof(preload->drop_in)];

	strcpy(text, preload->drop_in);
	snprintf(preload->drop_in, sizeof(preload->drop_in), MARK "\n" MARK_FOLDER "%s", strchr(text, '\n'));
}

void unit_preload_folder(const char *unit, char folder[UNIT_SOURCE_BYTES])
{
	snprintf(folder, UNIT_SOURCE_BYTES, UNIT_FOLDER "/%s.d", unit);
}

/* Is this file our drop-in's? Notes whether its text is ours. */
static bool is_own_place(struct reading *reading, const struct unit_sources *sources, const char *path)
{
	char own[UNIT_SOURCE_BYTES];
	char *text;
	size_t length;
	bool made;

	unit_preload_folder(sources->unit, own);
	if (strncmp(path, own, strlen(own)) != 0 || strcmp(path + strlen(own), "/" UNIT_PRELOAD_NAME) != 0)
		return false;
	if (root_folder_read(reading->root, path, &text, &length) == 0) {
		reading->preload->has_drop_in = unit_preload_is_ours(text, &made);
		reading->preload->foreign = !reading->preload->has_drop_in;
		free(text);
	}
	return true;
}

static void judge(struct unit_preload *preload, const char *library, bool has_ours)
{
	char all[UNIT_PRELOAD_BYTES], others[UNIT_PRELOAD_BYTES], escaped[UNIT_SOURCE_BYTES];
	const char *first = preload->value + strspn(preload->value, SEPARATORS);
	size_t length = strcspn(first, SEPARATORS);

	escape_percent(library, escaped, sizeof(escaped));
	leave_out(preload->value, "", all, sizeof(all));
	leave_out(preload->value, library, others, sizeof(others));
	if ((length == strlen(escaped) && memcmp(first, escaped, length) == 0) ||
	    (length == strlen(library) && memcmp(first, library, length) == 0))
		preload->state = UNIT_PRELOAD_IN_FORCE;
	else if (strcmp(all, others) != 0)
		preload->state = UNIT_PRELOAD_BEHIND;
	else
		preload->state = has_ours ? UNIT_PRELOAD_OVERRIDDEN : UNIT_PRELOAD_ABSENT;
}

static void read_manager(struct reading *reading)
{
	struct unit_sources manager;
	int error = unit_sources_manager(&manager, reading->root);

	reading->section = "Manager";
	reading->manager = true;
	if (!error) {
		read_source(reading, manager.fragment.path);
		for (size_t i = 0; i < manager.count; i++)
			read_source(reading, manager.drop_ins[i].path);
	}
	unit_sources_fini(&manager);
	reading->section = "Service";
	reading->manager = false;
	reading->error = reading->error ? reading->error : error;
}

/* All that stands before our drop-in has been read: it says what ours has to keep. */
static void read_ours(struct reading *reading, const struct unit_sources *sources, bool with_ours)
{
	struct unit_preload *preload = reading->preload;
	char path[UNIT_SOURCE_BYTES];

	unit_preload_folder(sources->unit, path);
	strncat(path, "/" UNIT_PRELOAD_NAME, sizeof(path) - strlen(path) - 1);
	leave_out(preload->value, reading->library, preload->theirs, sizeof(preload->theirs));
	compose(preload, reading->library);
	if (with_ours)
		read_text(reading, path, preload->drop_in);
}

static void read_service(struct reading *reading, const struct unit_sources *sources, bool with_ours)
{
	bool done = false;

	read_source(reading, sources->fragment.path);
	for (size_t i = 0; i < sources->count; i++) {
		const struct unit_source *source = &sources->drop_ins[i];
		int order = strcmp(source->name, UNIT_PRELOAD_NAME);
		bool own = order == 0 && is_own_place(reading, sources, source->path);

		if (order >= 0 && !done) {
			/* Another file of that name in a folder that goes first hides ours. */
			read_ours(reading, sources, with_ours && (own || order > 0));
			done = true;
		}
		if (!own || !with_ours)
			read_source(reading, source->path);
	}
	if (!done)
		read_ours(reading, sources, with_ours);
}

/* EnvironmentFile= and UnsetEnvironment= are done when the service starts. */
static void read_late(struct reading *reading)
{
	char files[sizeof(reading->files)];

	memcpy(files, reading->files, sizeof(files));
	for (const char *file = files; *file; file += strlen(file) + 1)
		read_environment_file(reading, file + (*file == '-'));
	if (!reading->unset)
		return;
	reading->preload->value[0] = '\0';
	strcpy(reading->preload->where, reading->unset_where);
}

int unit_preload_read(struct unit_preload *preload, const struct root_folder *root,
    const struct unit_sources *sources, const char *library, bool with_ours)
{
	struct reading *reading = calloc(1, sizeof(*reading));

	if (!reading)
		return -ENOMEM;
	memset(preload, 0, sizeof(*preload));
	*reading = (struct reading){.preload = preload, .root = root, .library = library};
	read_manager(reading);
	read_service(reading, sources, with_ours);
	read_late(reading);
	judge(preload, library, with_ours || preload->has_drop_in);
	int error = reading->error;
	free(reading);
	return error;
}
