/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/enable_unit.h"

#include "pprof/table/array.h"
#include "pprof/text/log_line.h"
#include "sampler/enable/enable_launcher.h"
#include "sampler/enable/unit_sources.h"
#include "sampler/loader/preload_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One unit's files, read. Large: on the heap. */
struct unit {
	struct unit_sources sources;
	struct unit_preload preload;
};

static void unit_free(struct unit *unit)
{
	if (unit)
		unit_sources_fini(&unit->sources);
	free(unit);
}

static const char *why_not_found(int error)
{
	switch (error) {
	case -ENOENT:
		return "there is no such unit";
	case -ERFKILL:
		return "it is masked";
	default:
		return strerror(-error);
	}
}

static int name_of(const char *word, char unit[UNIT_NAME_BYTES])
{
	int error = unit_sources_name(word, unit);

	if (error)
		log_line("%s: %s", word,
		    error == -EOPNOTSUPP ? "only services can be enabled" : "that is no name of a unit");
	return error;
}

static int open_in_root(const void *root, const char *path)
{
	return root_folder_file(root, path);
}

/* Would the library do harm there, or nothing at all? True after a line. */
static bool is_hopeless(const struct root_folder *root, const struct unit *unit, const char *library)
{
	const struct unit_preload *preload = &unit->preload;
	const struct preload_check_who who = {
	    .preload = preload->theirs, .open = open_in_root, .context = root};
	char path[UNIT_SOURCE_BYTES * 2];

	if (*preload->root_directory) {
		snprintf(path, sizeof(path), "%s%s", preload->root_directory, library);
		if (root_folder_has(root, path))
			return false;
		log_line("%s runs in %s, where there is no %s: put it there first", unit->sources.unit,
		    preload->root_directory, library);
		return true;
	}
	if (*preload->program != '/')
		return false;
	enum preload_check_kind kind = preload_check_inspect_by(preload->program, &who);
	const char *obstacle = preload_check_obstacle(kind);
	if (!obstacle || (*root->path && kind == PRELOAD_CHECK_FOREIGN))
		return false;
	log_line("%s: %s %s", unit->sources.unit, preload->program, obstacle);
	return true;
}

static void describe_override(
    const struct unit_preload *preload, const char *library, char *reason, size_t reason_bytes)
{
	if (preload->state == UNIT_PRELOAD_BEHIND)
		snprintf(reason, reason_bytes,
		    "%s sets LD_PRELOAD=%s, where another library is before ours: put %s first there",
		    preload->where, preload->value, library);
	else if (*preload->value)
		snprintf(reason, reason_bytes,
		    "%s overrides it with LD_PRELOAD=%s: put %s: before that, or remove the line",
		    preload->where, preload->value, library);
	else
		snprintf(reason, reason_bytes, "%s takes LD_PRELOAD back: remove the line", preload->where);
}

bool enable_unit_is_in_force(
    const struct root_folder *root, const char *name, const char *library, char *reason, size_t reason_bytes)
{
	struct unit *unit = calloc(1, sizeof(*unit));
	bool in_force = false;
	int error = unit ? unit_sources_find(&unit->sources, root, name) : -ENOMEM;

	if (!error)
		error = unit_preload_read(&unit->preload, root, &unit->sources, library, false);
	if (error)
		snprintf(reason, reason_bytes, "%s", why_not_found(error));
	else if (unit->preload.state == UNIT_PRELOAD_IN_FORCE)
		in_force = true;
	else
		describe_override(&unit->preload, library, reason, reason_bytes);
	unit_free(unit);
	return in_force;
}

/* The text that is there, if it is ours. The caller frees it. */
static char *read_own(const struct root_folder *root, const char *folder, bool *made_folder)
{
	char path[UNIT_SOURCE_BYTES + sizeof(UNIT_PRELOAD_NAME)], *text;
	size_t length;

	snprintf(path, sizeof(path), "%s/" UNIT_PRELOAD_NAME, folder);
	if (root_folder_read(root, path, &text, &length) != 0)
		return NULL;
	if (unit_preload_is_ours(text, made_folder))
		return text;
	free(text);
	return NULL;
}

/* The folder is marked as made by us only once it is: the file is written twice then. */
static int write_drop_in(
    const struct root_folder *root, const char *folder, struct unit_preload *preload, bool *changed)
{
	bool made = false;
	char *old = read_own(root, folder, &made);

	if (made)
		unit_preload_mark_folder(preload);
	*changed = !old || strcmp(old, preload->drop_in) != 0;
	free(old);
	if (!*changed)
		return 0;
	bool made_now = false;
	int error = root_folder_replace(root, folder, UNIT_PRELOAD_NAME, preload->drop_in, &made_now);
	if (!error && made_now) {
		unit_preload_mark_folder(preload);
		error = root_folder_replace(root, folder, UNIT_PRELOAD_NAME, preload->drop_in, NULL);
	}
	return error;
}

static enum enable_unit_result add(const struct root_folder *root, struct unit *unit, const char *library)
{
	struct unit_preload *preload = &unit->preload;
	const char *name = unit->sources.unit;
	char folder[UNIT_SOURCE_BYTES], reason[UNIT_PRELOAD_BYTES * 2];
	bool changed;

	unit_preload_folder(name, folder);
	if (preload->foreign) {
		log_line("%s: %s%s/" UNIT_PRELOAD_NAME " is not heaptap's: it is left alone", name,
		    root->path, folder);
		return ENABLE_UNIT_FAILED;
	}
	if (is_hopeless(root, unit, library))
		return ENABLE_UNIT_FAILED;
	int error = write_drop_in(root, folder, preload, &changed);
	if (error) {
		log_line("%s: cannot write %s%s/" UNIT_PRELOAD_NAME ": %s", name, root->path, folder,
		    strerror(-error));
		return ENABLE_UNIT_FAILED;
	}
	if (changed)
		printf("%s: wrote %s%s/" UNIT_PRELOAD_NAME "\n", name, root->path, folder);
	else
		printf("%s: is enabled already\n", name);
	enable_launcher_say(root, name, preload->program, library);
	if (preload->state == UNIT_PRELOAD_IN_FORCE)
		return changed ? ENABLE_UNIT_DONE : ENABLE_UNIT_ALREADY;
	describe_override(preload, library, reason, sizeof(reason));
	log_line("%s will not load the library: %s", name, reason);
	return ENABLE_UNIT_FAILED;
}

enum enable_unit_result enable_unit_add(
    const struct root_folder *root, const char *word, const struct enable_library *library)
{
	enum enable_unit_result result = ENABLE_UNIT_FAILED;
	char name[UNIT_NAME_BYTES];

	if (name_of(word, name))
		return result;
	struct unit *unit = calloc(1, sizeof(*unit));
	int error = unit ? unit_sources_find(&unit->sources, root, name) : -ENOMEM;
	if (!error)
		error = unit_preload_read(&unit->preload, root, &unit->sources, library->path, true);
	if (error)
		log_line("%s: %s", name, why_not_found(error));
	else
		result = add(root, unit, library->path);
	unit_free(unit);
	return result;
}

/* Its own name, where it is an alias; as it is given, if there is no such unit any more. */
static int own_name(const struct root_folder *root, const char *word, char name[UNIT_NAME_BYTES])
{
	struct unit_sources sources;
	int error = name_of(word, name);

	if (error)
		return error;
	if (unit_sources_find(&sources, root, name) == 0)
		strcpy(name, sources.unit);
	unit_sources_fini(&sources);
	return 0;
}

enum enable_unit_result enable_unit_remove(const struct root_folder *root, const char *word)
{
	char name[UNIT_NAME_BYTES], folder[UNIT_SOURCE_BYTES];
	bool made_folder;

	if (own_name(root, word, name))
		return ENABLE_UNIT_FAILED;
	unit_preload_folder(name, folder);
	char *text = read_own(root, folder, &made_folder);
	if (!text) {
		printf("%s: is not enabled\n", name);
		return ENABLE_UNIT_ALREADY;
	}
	free(text);
	int error = root_folder_remove(root, folder, UNIT_PRELOAD_NAME, made_folder);
	if (error) {
		log_line("%s: cannot remove %s%s/" UNIT_PRELOAD_NAME ": %s", name, root->path, folder,
		    strerror(-error));
		return ENABLE_UNIT_FAILED;
	}
	printf("%s: removed %s%s/" UNIT_PRELOAD_NAME "\n", name, root->path, folder);
	return ENABLE_UNIT_DONE;
}

/* ---- all units */

struct names {
	const struct root_folder *root;
	char (*names)[UNIT_NAME_BYTES];
	size_t count, capacity;
};

static int add_name(void *context, const char *name)
{
	struct names *names = context;
	char folder[UNIT_SOURCE_BYTES];
	size_t length = strlen(name);
	bool made_folder;

	if (length < 3 || strcmp(name + length - 2, ".d") != 0 || length - 2 >= UNIT_NAME_BYTES)
		return 0;
	snprintf(folder, sizeof(folder), UNIT_FOLDER "/%s", name);
	char *text = read_own(names->root, folder, &made_folder);
	if (!text)
		return 0;
	free(text);
	int error = array_reserve(&names->names, &names->capacity, names->count + 1, sizeof(*names->names));
	if (!error)
		snprintf(names->names[names->count++], UNIT_NAME_BYTES, "%.*s", (int)length - 2, name);
	return error;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

int enable_unit_each(
    const struct root_folder *root, void (*visit)(void *context, const char *unit), void *context)
{
	struct names names = {.root = root};
	int error = root_folder_each(root, UNIT_FOLDER, add_name, &names);

	if (names.count)
		qsort(names.names, names.count, sizeof(*names.names), by_name);
	for (size_t i = 0; !error && i < names.count; i++)
		visit(context, names.names[i]);
	free(names.names);
	return error;
}
