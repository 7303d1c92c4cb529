/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/preload_library.h"

#include "sampler/linux/installed_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD"
#define HANDLE  "HEAPTAP"

#define ASAN_OPTIONS   "ASAN_OPTIONS"
#define ASAN_ANY_ORDER "verify_asan_link_order=0"

enum { MADE_COUNT = 3 };

int preload_library_find(char *path, size_t path_bytes)
{
	return installed_file_find(PRELOAD_LIBRARY_NAME, path, path_bytes);
}

int attach_library_find(char *path, size_t path_bytes)
{
	return installed_file_find(ATTACH_LIBRARY_NAME, path, path_bytes);
}

bool preload_library_is_preloadable(const char *path)
{
	return strpbrk(path, " :$") == NULL;
}

static bool variable_is(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static char *entry_make(const char *name, const char *first, const char *separator, const char *second)
{
	char *entry;

	return asprintf(&entry, "%s=%s%s%s", name, first, separator, second) < 0 ? NULL : entry;
}

/*
 * A child built with gcc's AddressSanitizer ends at once if any library was preloaded before the runtime.
 * With this option the child starts, and detects the same errors as without us, since our library only
 * forwards to the next malloc.
 */
static char *asan_options(char *const environment[])
{
	for (; *environment; environment++)
		if (variable_is(*environment, ASAN_OPTIONS))
			return entry_make(
			    ASAN_OPTIONS, *environment + sizeof(ASAN_OPTIONS), ":", ASAN_ANY_ORDER);
	return entry_make(ASAN_OPTIONS, ASAN_ANY_ORDER, "", "");
}

/*
 * The allocation begins with the strings that are made here, so that they can be freed. The array that the
 * caller sees begins behind them.
 */
char **preload_library_environment(char *const environment[], const char *library, const char *value)
{
	const char *preload = NULL;
	char **made, **next;
	size_t count = 0;

	for (; environment[count]; count++) {
		if (variable_is(environment[count], PRELOAD))
			preload = environment[count] + sizeof(PRELOAD);
	}
	made = calloc(count + MADE_COUNT + 4, sizeof(*made));
	if (!made)
		return NULL;
	made[0] = entry_make(PRELOAD, library, preload && *preload ? ":" : "", preload ? preload : "");
	made[1] = entry_make(HANDLE, value, "", "");
	made[2] = asan_options(environment);
	next = made + MADE_COUNT;
	for (size_t i = 0; i < count; i++) {
		if (!variable_is(environment[i], HANDLE) && !variable_is(environment[i], ASAN_OPTIONS))
			*next++ = variable_is(environment[i], PRELOAD) ? made[0] : environment[i];
	}
	if (!preload)
		*next++ = made[0];
	*next++ = made[1];
	*next = made[2];
	if (made[0] && made[1] && made[2])
		return made + MADE_COUNT;
	preload_library_environment_free(made + MADE_COUNT);
	return NULL;
}

void preload_library_environment_free(char **environment)
{
	if (!environment)
		return;
	for (int i = 1; i <= MADE_COUNT; i++)
		free(environment[-i]);
	free(environment - MADE_COUNT);
}
