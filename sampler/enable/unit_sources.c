/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/unit_sources.h"

#include "pprof/table/array.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SERVICE            ".service"

enum { ALIASES_MOST = 8 }; /* links from name to name that are followed */

/* Those of the system's manager, the first wins. */
static const char *const folders[] = {"/etc/systemd/system.control", "/run/systemd/system.control",
    "/run/systemd/transient", "/run/systemd/generator.early", UNIT_FOLDER, "/etc/systemd/system.attached",
    "/run/systemd/system", "/run/systemd/system.attached", "/run/systemd/generator",
    "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
    "/run/systemd/generator.late"};

int unit_sources_name(const char *word, char unit[UNIT_NAME_BYTES])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@";
	static const char *const others[] = {".socket", ".device", ".mount", ".automount", ".swap", ".target",
	    ".path", ".timer", ".slice", ".scope"};
	const char *dot = strrchr(word, '.');
	bool whole = dot && strcmp(dot, SERVICE) == 0;

	for (size_t i = 0; dot && i < ARRAY_COUNT(others); i++)
		if (strcmp(dot, others[i]) == 0)
			return -EOPNOTSUPP;
	if (!*word || word[strspn(word, allowed)] || *word == '.' || *word == '@')
		return -EINVAL;
	return snprintf(unit, UNIT_NAME_BYTES, "%s%s", word, whole ? "" : SERVICE) < UNIT_NAME_BYTES
	    ? 0
	    : -EINVAL;
}

/* "postgresql@.service" of "postgresql@15-main.service". False: it is no instance. */
static bool template_of(const char *unit, char name[UNIT_NAME_BYTES])
{
	const char *at = strchr(unit, '@');

	if (!at || strcmp(at + 1, SERVICE) == 0)
		return false;
	snprintf(name, UNIT_NAME_BYTES, "%.*s" SERVICE, (int)(at + 1 - unit), unit);
	return true;
}

static bool join(char path[UNIT_SOURCE_BYTES], const char *folder, const char *name)
{
	return snprintf(path, UNIT_SOURCE_BYTES, "%s/%s", folder, name) < UNIT_SOURCE_BYTES;
}

/* The unit file of that very name. `unit` becomes another name if it is an alias. 0, -ENOENT, -ERFKILL. */
static int find_named(
    const struct root_folder *root, char unit[UNIT_NAME_BYTES], char path[UNIT_SOURCE_BYTES])
{
	char target[PATH_MAX];

	for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
		if (!join(path, folders[i], unit))
			continue;
		ssize_t length = root_folder_link(root, path, target, sizeof(target));
		if (length < 0 && !root_folder_has(root, path))
			continue;
		if (length < 0)
			return 0;
		if (strcmp(target, "/dev/null") == 0)
			return -ERFKILL;
		const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
		if (!root_folder_has(root, path) || strlen(name) >= UNIT_NAME_BYTES)
			continue; /* leads nowhere */
		if (strcmp(name, unit) == 0)
			return 0; /* a link to a file of the same name somewhere else */
		strcpy(unit, name);
		return -EAGAIN;
	}
	return -ENOENT;
}

static int find_fragment(struct unit_sources *sources, const struct root_folder *root)
{
	char name[UNIT_NAME_BYTES];
	int error = -EAGAIN;

	for (int i = 0; error == -EAGAIN && i < ALIASES_MOST; i++)
		error = find_named(root, sources->unit, sources->fragment.path);
	if (error == -ENOENT && template_of(sources->unit, name))
		error = find_named(root, name, sources->fragment.path);
	sources->fragment.name = strrchr(sources->fragment.path, '/');
	if (sources->fragment.name)
		sources->fragment.name++;
	return error == -EAGAIN ? -ELOOP : error;
}

struct visit {
	struct unit_sources *sources;
	const struct root_folder *root;
	const char *folder;
};

/* Of two of the same name the one that was found first counts. */
static int add_drop_in(void *context, const char *name)
{
	const struct visit *visit = context;
	struct unit_sources *sources = visit->sources;
	const char *dot = strrchr(name, '.');

	if (!dot || strcmp(dot, ".conf") != 0 || *name == '.')
		return 0;
	for (size_t i = 0; i < sources->count; i++)
		if (strcmp(strrchr(sources->drop_ins[i].path, '/') + 1, name) == 0)
			return 0;
	int error = array_reserve(
	    &sources->drop_ins, &sources->capacity, sources->count + 1, sizeof(*sources->drop_ins));
	if (!error && join(sources->drop_ins[sources->count].path, visit->folder, name))
		sources->count++;
	return error;
}

static int add_folders(struct unit_sources *sources, const struct root_folder *root, const char *of)
{
	char folder[UNIT_SOURCE_BYTES];
	struct visit visit = {sources, root, folder};
	int error = 0;

	for (size_t i = 0; !error && i < ARRAY_COUNT(folders); i++)
		if (snprintf(folder, sizeof(folder), "%s/%s.d", folders[i], of) < (int)sizeof(folder))
			error = root_folder_each(root, folder, add_drop_in, &visit);
	return error;
}

static int by_name(const void *a, const void *b)
{
	const struct unit_source *x = a, *y = b;

	return strcmp(strrchr(x->path, '/'), strrchr(y->path, '/'));
}

/* "foo-bar-.service", "foo-.service" of "foo-bar-baz.service" */
static int add_prefixes(struct unit_sources *sources, const struct root_folder *root)
{
	char name[UNIT_NAME_BYTES];
	int length = (int)strcspn(sources->unit, "@"), error = 0;

	if (!sources->unit[length])
		length = (int)strlen(sources->unit) - (int)strlen(SERVICE);
	while (!error && --length > 0) {
		if (sources->unit[length] != '-')
			continue;
		snprintf(name, sizeof(name), "%.*s" SERVICE, length + 1, sources->unit);
		error = add_folders(sources, root, name);
	}
	return error;
}

static void sort_drop_ins(struct unit_sources *sources)
{
	if (sources->count)
		qsort(sources->drop_ins, sources->count, sizeof(*sources->drop_ins), by_name);
	for (size_t i = 0; i < sources->count; i++)
		sources->drop_ins[i].name = strrchr(sources->drop_ins[i].path, '/') + 1;
}

int unit_sources_find(struct unit_sources *sources, const struct root_folder *root, const char *unit)
{
	char name[UNIT_NAME_BYTES];

	memset(sources, 0, sizeof(*sources));
	snprintf(sources->unit, sizeof(sources->unit), "%s", unit);
	int error = find_fragment(sources, root);
	if (!error)
		error = add_folders(sources, root, sources->unit);
	if (!error && template_of(sources->unit, name))
		error = add_folders(sources, root, name);
	if (!error)
		error = add_prefixes(sources, root);
	if (!error)
		error = add_folders(sources, root, "service");
	sort_drop_ins(sources);
	return error;
}

int unit_sources_manager(struct unit_sources *sources, const struct root_folder *root)
{
	static const char *const manager[] = {"/etc/systemd/system.conf.d", "/run/systemd/system.conf.d",
	    "/usr/local/lib/systemd/system.conf.d", "/usr/lib/systemd/system.conf.d"};
	int error = 0;

	memset(sources, 0, sizeof(*sources));
	strcpy(sources->fragment.path, "/etc/systemd/system.conf");
	for (size_t i = 0; !error && i < ARRAY_COUNT(manager); i++) {
		struct visit visit = {sources, root, manager[i]};

		error = root_folder_each(root, manager[i], add_drop_in, &visit);
	}
	sort_drop_ins(sources);
	return error;
}

int unit_sources_wants(const struct root_folder *root, const char *unit,
    int (*visit)(void *context, const char *name), void *context)
{
	char folder[UNIT_SOURCE_BYTES];
	int error = 0;

	for (size_t i = 0; !error && i < ARRAY_COUNT(folders); i++)
		if (snprintf(folder, sizeof(folder), "%s/%s.wants", folders[i], unit) < (int)sizeof(folder))
			error = root_folder_each(root, folder, visit, context);
	return error;
}

void unit_sources_fini(struct unit_sources *sources)
{
	free(sources->drop_ins);
	sources->drop_ins = NULL;
	sources->count = sources->capacity = 0;
}
