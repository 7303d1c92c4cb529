/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/enable/enable_unit.h"

#include "pprof/table/array.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/enable/launcher.h"
#include "sampler/cmd/enable/unit.h"
#include "sampler/inject/preload_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	int error = unit_name(word, unit);

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
	const struct preload_check_who who = {.preload = unit->theirs, .open = open_in_root, .context = root};
	char path[UNIT_PATH_BYTES * 2];

	if (*unit->root_directory) {
		snprintf(path, sizeof(path), "%s%s", unit->root_directory, library);
		if (root_folder_has(root, path))
			return false;
		log_line("%s runs in %s, where there is no %s: put it there first", unit->name,
		    unit->root_directory, library);
		return true;
	}
	if (*unit->program != '/')
		return false;
	enum preload_check_kind kind = preload_check_inspect_by(unit->program, &who);
	const char *obstacle = preload_check_obstacle(kind);
	if (!obstacle || (*root->path && kind == PRELOAD_CHECK_FOREIGN))
		return false;
	log_line("%s: %s %s", unit->name, unit->program, obstacle);
	return true;
}

static void describe_override(const struct unit *unit, const char *library, char *reason, size_t reason_bytes)
{
	if (unit->state == UNIT_BEHIND)
		snprintf(reason, reason_bytes,
		    "%s sets LD_PRELOAD=%s, where another library is before ours: put %s first there",
		    unit->where, unit->value, library);
	else if (*unit->value)
		snprintf(reason, reason_bytes,
		    "%s overrides it with LD_PRELOAD=%s: put %s: before that, or remove the line",
		    unit->where, unit->value, library);
	else
		snprintf(reason, reason_bytes, "%s takes LD_PRELOAD back: remove the line", unit->where);
}

bool enable_unit_is_in_force(
    const struct root_folder *root, const char *name, const char *library, char *reason, size_t reason_bytes)
{
	struct unit *unit = malloc(sizeof(*unit)); /* large */
	int error = unit ? unit_read(unit, root, name, library, false) : -ENOMEM;
	const bool in_force = !error && unit->state == UNIT_IN_FORCE;

	if (error)
		snprintf(reason, reason_bytes, "%s", why_not_found(error));
	else if (!in_force)
		describe_override(unit, library, reason, reason_bytes);
	free(unit);
	return in_force;
}

/* The text of our drop-in in that folder, which the caller frees. NULL if none is there. */
static char *read_own(const struct root_folder *root, const char *folder)
{
	char path[UNIT_PATH_BYTES + sizeof(UNIT_DROP_IN)], *text;
	size_t length;

	snprintf(path, sizeof(path), "%s/" UNIT_DROP_IN, folder);
	if (root_folder_read(root, path, &text, &length) != 0)
		return NULL;
	if (unit_text_is_ours(text))
		return text;
	free(text);
	return NULL;
}

/* Returns `result` unless another file overrides our drop-in. */
static enum enable_unit_result finish(const struct root_folder *root, const struct unit *unit,
    const char *library, enum enable_unit_result result)
{
	char reason[UNIT_PRELOAD_BYTES * 2];

	launcher_say(root, unit->name, unit->program, library);
	if (unit->state == UNIT_IN_FORCE)
		return result;
	describe_override(unit, library, reason, sizeof(reason));
	log_line("%s will not load the library: %s", unit->name, reason);
	return ENABLE_UNIT_FAILED;
}

static enum enable_unit_result add(
    const struct root_folder *root, const struct unit *unit, const char *library)
{
	char folder[UNIT_PATH_BYTES];

	unit_folder(unit->name, folder);
	if (unit->foreign) {
		log_line("%s: %s%s/" UNIT_DROP_IN " is not heaptap's: it is left alone", unit->name,
		    root->path, folder);
		return ENABLE_UNIT_FAILED;
	}
	if (is_hopeless(root, unit, library))
		return ENABLE_UNIT_FAILED;
	char *old = read_own(root, folder);
	const bool same = old && strcmp(old, unit->drop_in) == 0;
	free(old);
	if (same) {
		printf("%s: is enabled already\n", unit->name);
		return finish(root, unit, library, ENABLE_UNIT_ALREADY);
	}
	int error = root_folder_replace(root, folder, UNIT_DROP_IN, unit->drop_in);
	if (error) {
		log_line("%s: cannot write %s%s/" UNIT_DROP_IN ": %s", unit->name, root->path, folder,
		    strerror(-error));
		return ENABLE_UNIT_FAILED;
	}
	printf("%s: wrote %s%s/" UNIT_DROP_IN "\n", unit->name, root->path, folder);
	return finish(root, unit, library, ENABLE_UNIT_DONE);
}

enum enable_unit_result enable_unit_add(
    const struct root_folder *root, const char *word, const struct enable_library *library)
{
	enum enable_unit_result result = ENABLE_UNIT_FAILED;
	char name[UNIT_NAME_BYTES];

	if (name_of(word, name))
		return result;
	struct unit *unit = malloc(sizeof(*unit));
	int error = unit ? unit_read(unit, root, name, library->path, true) : -ENOMEM;
	if (error)
		log_line("%s: %s", name, why_not_found(error));
	else
		result = add(root, unit, library->path);
	free(unit);
	return result;
}

/* Also of a unit that is missing, by the name that is given. */
enum enable_unit_result enable_unit_remove(const struct root_folder *root, const char *word)
{
	char name[UNIT_NAME_BYTES], folder[UNIT_PATH_BYTES];
	struct unit *unit;

	if (name_of(word, name))
		return ENABLE_UNIT_FAILED;
	unit = malloc(sizeof(*unit));
	if (unit && unit_read(unit, root, name, "", false) == 0)
		strcpy(name, unit->name);
	free(unit);
	unit_folder(name, folder);
	char *text = read_own(root, folder);
	if (!text) {
		printf("%s: is not enabled\n", name);
		return ENABLE_UNIT_ALREADY;
	}
	free(text);
	int error = root_folder_remove(root, folder, UNIT_DROP_IN);
	if (error) {
		log_line("%s: cannot remove %s%s/" UNIT_DROP_IN ": %s", name, root->path, folder,
		    strerror(-error));
		return ENABLE_UNIT_FAILED;
	}
	printf("%s: removed %s%s/" UNIT_DROP_IN "\n", name, root->path, folder);
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
	char folder[UNIT_PATH_BYTES];
	size_t length = strlen(name);

	if (length < 3 || strcmp(name + length - 2, ".d") != 0 || length - 2 >= UNIT_NAME_BYTES)
		return 0;
	snprintf(folder, sizeof(folder), UNIT_FOLDER "/%s", name);
	char *text = read_own(names->root, folder);
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
