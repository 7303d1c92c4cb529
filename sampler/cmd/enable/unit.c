/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/enable/unit.h"

#include "pprof/table/array.h"
#include "sampler/cmd/enable/unit_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE    ".service"
#define VARIABLE   "LD_PRELOAD"
#define MARK       "# Written by `heaptap enable`; `heaptap disable` removes it.\n"
#define SEPARATORS ": \t\n"

enum { ALIASES_MOST = 8 /* links from name to name that are followed */ };

/* Where the system's manager looks for units. The first folder that has a file wins. */
static const char *const unit_folders[] = {"/etc/systemd/system.control", "/run/systemd/system.control",
    "/run/systemd/transient", "/run/systemd/generator.early", UNIT_FOLDER, "/etc/systemd/system.attached",
    "/run/systemd/system", "/run/systemd/system.attached", "/run/systemd/generator",
    "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
    "/run/systemd/generator.late", NULL};

/* Where the manager looks for its own configuration, systemd-system.conf(5). */
static const char *const manager_folders[] = {
    "/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", NULL};

/* ---- names */

int unit_name(const char *word, char name[UNIT_NAME_BYTES])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@";
	static const char *const others[] = {".socket", ".device", ".mount", ".automount", ".swap", ".target",
	    ".path", ".timer", ".slice", ".scope"};
	const char *dot = strrchr(word, '.');
	const bool whole = dot && strcmp(dot, SERVICE) == 0;

	for (size_t i = 0; dot && i < ARRAY_COUNT(others); i++)
		if (strcmp(dot, others[i]) == 0)
			return -EOPNOTSUPP;
	if (!*word || word[strspn(word, allowed)] || *word == '.' || *word == '@')
		return -EINVAL;
	const int length = snprintf(name, UNIT_NAME_BYTES, "%s%s", word, whole ? "" : SERVICE);
	return length < UNIT_NAME_BYTES ? 0 : -EINVAL;
}

/* "postgresql@.service" of "postgresql@15-main.service". False: the unit is not an instance. */
static bool template_of(const char *name, char template[UNIT_NAME_BYTES])
{
	const char *at = strchr(name, '@');

	if (!at || strcmp(at + 1, SERVICE) == 0)
		return false;
	snprintf(template, UNIT_NAME_BYTES, "%.*s" SERVICE, (int)(at + 1 - name), name);
	return true;
}

void unit_folder(const char *name, char folder[UNIT_PATH_BYTES])
{
	snprintf(folder, UNIT_PATH_BYTES, UNIT_FOLDER "/%s.d", name);
}

bool unit_text_is_ours(const char *text)
{
	return strncmp(text, MARK, strlen(MARK)) == 0;
}

int unit_wants(const struct root_folder *root, const char *name,
    int (*visit)(void *context, const char *name), void *context)
{
	char folder[UNIT_PATH_BYTES];
	int error = 0;

	for (size_t i = 0; !error && unit_folders[i]; i++) {
		snprintf(folder, sizeof(folder), "%s/%s.wants", unit_folders[i], name);
		error = root_folder_each(root, folder, visit, context);
	}
	return error;
}

/* ---- which files */

/* The unit file of exactly that name. -EAGAIN: it is an alias, and `name` becomes the other name. */
static int find_named(const struct root_folder *root, char name[UNIT_NAME_BYTES], char path[UNIT_PATH_BYTES])
{
	char target[PATH_MAX];

	for (size_t i = 0; unit_folders[i]; i++) {
		snprintf(path, UNIT_PATH_BYTES, "%s/%s", unit_folders[i], name);
		const bool is_link = root_folder_link(root, path, target, sizeof(target)) >= 0;
		if (is_link && strcmp(target, "/dev/null") == 0)
			return -ERFKILL;
		if (!root_folder_has(root, path))
			continue;
		const char *slash = is_link ? strrchr(target, '/') : NULL;
		const char *other = slash ? slash + 1 : is_link ? target : name;
		if (strcmp(other, name) == 0)
			return 0;
		if (snprintf(name, UNIT_NAME_BYTES, "%s", other) < UNIT_NAME_BYTES)
			return -EAGAIN;
	}
	return -ENOENT;
}

static int find_unit_file(
    const struct root_folder *root, char name[UNIT_NAME_BYTES], char path[UNIT_PATH_BYTES])
{
	char template[UNIT_NAME_BYTES];
	int error = -EAGAIN;

	for (int i = 0; error == -EAGAIN && i < ALIASES_MOST; i++)
		error = find_named(root, name, path);
	if (error == -ENOENT && template_of(name, template))
		error = find_named(root, template, path);
	return error == -EAGAIN ? -ELOOP : error;
}

struct files {
	const struct root_folder *root;
	char folder[UNIT_PATH_BYTES]; /* that is being listed */
	char (*paths)[UNIT_PATH_BYTES];
	size_t count, capacity;
};

static const char *name_in(const char *path)
{
	return strrchr(path, '/') + 1;
}

static bool files_has(const struct files *files, const char *name)
{
	for (size_t i = 0; i < files->count; i++)
		if (strcmp(name_in(files->paths[i]), name) == 0)
			return true;
	return false;
}

/* Of two drop-ins of the same name the first one that is found counts. */
static int files_add(void *context, const char *name)
{
	struct files *files = context;
	const char *dot = strrchr(name, '.');

	if (!dot || strcmp(dot, ".conf") != 0 || *name == '.' || files_has(files, name))
		return 0;
	const int error =
	    array_reserve(&files->paths, &files->capacity, files->count + 1, sizeof(*files->paths));
	if (!error &&
	    snprintf(files->paths[files->count], UNIT_PATH_BYTES, "%s/%s", files->folder, name) <
	        UNIT_PATH_BYTES)
		files->count++;
	return error;
}

/* Adds the drop-ins of FOLDER/NAME.d for each of `folders`. */
static int files_add_all(struct files *files, const char *const *folders, const char *name)
{
	int error = 0;

	for (; !error && *folders; folders++)
		if (snprintf(files->folder, UNIT_PATH_BYTES, "%s/%s.d", *folders, name) < UNIT_PATH_BYTES)
			error = root_folder_each(files->root, files->folder, files_add, files);
	return error;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(name_in(a), name_in(b));
}

/* The drop-ins of the unit, its template, its prefixes ("foo-bar-.service", "foo-.service") and its type,
 * and the place of ours, in the order in which systemd reads them. */
static int find_drop_ins(struct files *files, const char *name)
{
	char other[UNIT_NAME_BYTES];
	int error = files_add_all(files, unit_folders, name);

	if (!error && template_of(name, other))
		error = files_add_all(files, unit_folders, other);
	size_t length = strcspn(name, "@");
	for (length -= name[length] ? 0 : strlen(SERVICE); !error && length > 0; length--) {
		if (name[length - 1] != '-')
			continue;
		snprintf(other, sizeof(other), "%.*s" SERVICE, (int)length, name);
		error = files_add_all(files, unit_folders, other);
	}
	if (!error)
		error = files_add_all(files, unit_folders, "service");
	unit_folder(name, files->folder);
	if (!error)
		error = files_add(files, UNIT_DROP_IN);
	if (files->count)
		qsort(files->paths, files->count, sizeof(*files->paths), by_name);
	return error;
}

/* ---- what they say */

struct reading {
	struct unit *unit;
	const struct root_folder *root;
	const char *section, *variables; /* which assignments count: [Service], Environment= */
	const char *path;                /* of the file that is being read */
	bool unset;
	char unset_where[UNIT_PATH_BYTES + 16];
	char files[UNIT_PATH_BYTES]; /* EnvironmentFile=, each ends with a newline */
	int error;
};

static void set_value(struct reading *reading, const char *value, unsigned int line)
{
	struct unit *unit = reading->unit;

	if (strlen(value) >= sizeof(unit->value))
		reading->error = -ENAMETOOLONG;
	snprintf(unit->value, sizeof(unit->value), "%s", value);
	snprintf(unit->where, sizeof(unit->where), "%.4095s:%u", reading->path, line);
}

/* Words NAME=VALUE. An empty assignment takes back all that were before. */
static void read_environment(struct reading *reading, const struct unit_file_entry *entry)
{
	const char *at = entry->value;
	char word[UNIT_PRELOAD_BYTES + 32];

	if (!*entry->value)
		set_value(reading, "", entry->line);
	while (unit_file_word(&at, word, sizeof(word)) == 1)
		if (strncmp(word, VARIABLE "=", strlen(VARIABLE "=")) == 0)
			set_value(reading, word + strlen(VARIABLE "="), entry->line);
}

static void read_unset(struct reading *reading, const struct unit_file_entry *entry)
{
	const char *at = entry->value;
	char word[UNIT_PRELOAD_BYTES + 32];

	if (!*entry->value)
		reading->unset = false;
	while (unit_file_word(&at, word, sizeof(word)) == 1) {
		if (strcmp(word, VARIABLE) != 0)
			continue;
		reading->unset = true;
		snprintf(reading->unset_where, sizeof(reading->unset_where), "%.4095s:%u", reading->path,
		    entry->line);
	}
}

static void read_environment_file(struct reading *reading, const char *value)
{
	const size_t length = strlen(reading->files);

	if (!*value)
		reading->files[0] = '\0';
	else if (length + strlen(value) + 2 < sizeof(reading->files))
		sprintf(reading->files + length, "%s\n", value);
}

/* The first program, without what stands before its path: "-", "@", "+"... */
static void read_program(struct unit *unit, const char *value)
{
	value += strspn(value, "@-:+!|");
	if (!*value)
		unit->program[0] = '\0';
	else if (!*unit->program)
		(void)unit_file_word(&value, unit->program, sizeof(unit->program));
}

static void read_entry(void *context, const struct unit_file_entry *entry)
{
	struct reading *reading = context;

	if (strcmp(entry->section, reading->section) != 0)
		return;
	if (strcmp(entry->key, reading->variables) == 0)
		read_environment(reading, entry);
	else if (strcmp(entry->key, "UnsetEnvironment") == 0)
		read_unset(reading, entry);
	else if (strcmp(entry->key, "EnvironmentFile") == 0)
		read_environment_file(reading, entry->value);
	else if (strcmp(entry->key, "ExecStart") == 0)
		read_program(reading->unit, entry->value);
	else if (strcmp(entry->key, "RootDirectory") == 0 || strcmp(entry->key, "RootImage") == 0)
		snprintf(reading->unit->root_directory, UNIT_PATH_BYTES, "%s", entry->value);
}

static void read_text(struct reading *reading, const char *path, const char *text)
{
	reading->path = path;
	const int error = unit_file_parse(text, read_entry, reading);
	reading->error = reading->error ? reading->error : error;
}

/* A file that is missing says nothing, as a link to /dev/null. */
static void read_file(struct reading *reading, const char *path)
{
	size_t length;
	char *text;

	if (root_folder_read(reading->root, path, &text, &length) != 0)
		return;
	read_text(reading, path, text);
	free(text);
}

static void read_manager(struct reading *reading)
{
	struct files files = {.root = reading->root};

	reading->section = "Manager";
	reading->variables = "DefaultEnvironment";
	reading->error = files_add_all(&files, manager_folders, "system.conf");
	read_file(reading, "/etc/systemd/system.conf");
	if (files.count)
		qsort(files.paths, files.count, sizeof(*files.paths), by_name);
	for (size_t i = 0; i < files.count; i++)
		read_file(reading, files.paths[i]);
	free(files.paths);
}

/* Copies the entries of `value` that are not `library`, separated by colons. Returns the place of the library
 * among the entries, or -1. */
static int leave_out(const char *value, const char *library, char rest[UNIT_PRELOAD_BYTES])
{
	size_t length = 0;
	int place = -1;

	rest[0] = '\0';
	for (int i = 0; *(value += strspn(value, SEPARATORS)); i++) {
		const size_t entry = strcspn(value, SEPARATORS);

		if (entry == strlen(library) && memcmp(value, library, entry) == 0)
			place = place < 0 ? i : place;
		else if (length + entry + 2 < UNIT_PRELOAD_BYTES)
			length +=
			    (size_t)sprintf(rest + length, "%s%.*s", length ? ":" : "", (int)entry, value);
		value += entry;
	}
	return place;
}

static void compose(struct unit *unit, const char *library)
{
	char word[UNIT_PRELOAD_BYTES + UNIT_PATH_BYTES], quoted[sizeof(unit->drop_in) - 128];

	snprintf(word, sizeof(word), VARIABLE "=%s%s%s", library, *unit->theirs ? ":" : "", unit->theirs);
	if (unit_file_quote(word, quoted, sizeof(quoted)) == 0)
		snprintf(unit->drop_in, sizeof(unit->drop_in), MARK "[Service]\nEnvironment=%s\n", quoted);
}

/* All that stands before our drop-in has been read: our drop-in has to keep it. Another file of its name, in
 * a folder that goes first, hides ours. */
static void read_own_place(struct reading *reading, const char *path, const char *library, bool with_ours)
{
	struct unit *unit = reading->unit;
	char folder[UNIT_PATH_BYTES], *text;
	size_t length;

	(void)leave_out(unit->value, library, unit->theirs);
	compose(unit, library);
	unit_folder(unit->name, folder);
	const bool hidden = strncmp(path, folder, strlen(folder)) != 0 || path[strlen(folder)] != '/';
	if (!hidden && root_folder_read(reading->root, path, &text, &length) == 0) {
		unit->has_drop_in = unit_text_is_ours(text);
		unit->foreign = !unit->has_drop_in;
		free(text);
	}
	if (with_ours && !hidden)
		read_text(reading, path, unit->drop_in);
	else
		read_file(reading, path);
}

static void read_service(struct reading *reading, const char *unit_file, const char *library, bool with_ours)
{
	struct files files = {.root = reading->root};

	reading->section = "Service";
	reading->variables = "Environment";
	const int error = find_drop_ins(&files, reading->unit->name);
	reading->error = reading->error ? reading->error : error;
	read_file(reading, unit_file);
	for (size_t i = 0; i < files.count; i++) {
		if (strcmp(name_in(files.paths[i]), UNIT_DROP_IN) == 0)
			read_own_place(reading, files.paths[i], library, with_ours);
		else
			read_file(reading, files.paths[i]);
	}
	free(files.paths);
}

/* Lines NAME=VALUE, where the value may be quoted. */
static void read_variables(struct reading *reading, const char *path)
{
	char *text, *rest, *line, word[UNIT_PRELOAD_BYTES + 32];
	unsigned int number = 0;
	size_t length;

	if (root_folder_read(reading->root, path, &text, &length) != 0)
		return;
	reading->path = path;
	for (rest = text; (line = strsep(&rest, "\n"));) {
		number++;
		line += strspn(line, " \t");
		if (strncmp(line, VARIABLE "=", strlen(VARIABLE "=")) != 0)
			continue;
		const char *at = line + strlen(VARIABLE "=");
		set_value(reading, unit_file_word(&at, word, sizeof(word)) == 1 ? word : "", number);
	}
	free(text);
}

/* systemd does these when the service starts. */
static void read_late(struct reading *reading)
{
	struct unit *unit = reading->unit;
	char *rest = reading->files, *file;

	while ((file = strsep(&rest, "\n")))
		read_variables(reading, file + (*file == '-'));
	if (!reading->unset)
		return;
	unit->value[0] = '\0';
	strcpy(unit->where, reading->unset_where);
}

int unit_read(
    struct unit *unit, const struct root_folder *root, const char *name, const char *library, bool with_ours)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	char unit_file[UNIT_PATH_BYTES], others[UNIT_PRELOAD_BYTES];

	memset(unit, 0, sizeof(*unit));
	snprintf(unit->name, sizeof(unit->name), "%s", name);
	int error = reading ? find_unit_file(root, unit->name, unit_file) : -ENOMEM;
	if (!error) {
		reading->unit = unit;
		reading->root = root;
		read_manager(reading);
		read_service(reading, unit_file, library, with_ours);
		read_late(reading);
		error = reading->error;
	}
	free(reading);
	const int place = leave_out(unit->value, library, others);
	unit->state = place == 0               ? UNIT_IN_FORCE
	    : place > 0                        ? UNIT_BEHIND
	    : (with_ours || unit->has_drop_in) ? UNIT_OVERRIDDEN
	                                       : UNIT_ABSENT;
	return error;
}
