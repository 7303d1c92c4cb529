/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/foreign_preload.h"

#include "sampler/inject/preload_library.h"

#include <string.h>

static const struct variable {
	const char *shown, *hidden;
} variables[] = {
    {"LD_PRELOAD=", "LD.PRELOAD="},
    {"LD_AUDIT=", "LD.AUDIT="},
};

enum { VARIABLE_COUNT = sizeof(variables) / sizeof(variables[0]) };

static bool begins(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Are these `length` characters of a list a path of our library? */
static bool is_ours(const char *path, size_t length)
{
	const size_t own = sizeof(PRELOAD_LIBRARY_NAME) - 1;

	return length >= own && memcmp(path + length - own, PRELOAD_LIBRARY_NAME, own) == 0 &&
	    (length == own || path[length - own - 1] == '/');
}

/* As ld.so(8) separates them. */
static bool names_foreign(const char *list)
{
	for (size_t length; *list; list += length + (list[length] != '\0')) {
		length = strcspn(list, ": ");
		if (length && !is_ours(list, length))
			return true;
	}
	return false;
}

static bool holds_foreign(char *const environment[])
{
	for (; *environment; environment++)
		for (size_t i = 0; i < VARIABLE_COUNT; i++)
			if (begins(*environment, variables[i].shown) &&
			    names_foreign(*environment + strlen(variables[i].shown)))
				return true;
	return false;
}

/* The user's own variables have these names: they would become LD_PRELOAD together with ours. */
static bool holds_hidden(char *const environment[])
{
	for (; *environment; environment++)
		for (size_t i = 0; i < VARIABLE_COUNT; i++)
			if (begins(*environment, variables[i].hidden))
				return true;
	return false;
}

bool foreign_preload_hide(char *const environment[])
{
	if (!holds_foreign(environment) || holds_hidden(environment))
		return false;
	for (; *environment; environment++)
		for (size_t i = 0; i < VARIABLE_COUNT; i++)
			if (begins(*environment, variables[i].shown))
				memcpy(*environment, variables[i].hidden, strlen(variables[i].hidden));
	return true;
}

bool foreign_preload_restore(char *const environment[])
{
	bool found = false;

	for (; *environment; environment++)
		for (size_t i = 0; i < VARIABLE_COUNT; i++)
			if (begins(*environment, variables[i].hidden)) {
				memcpy(*environment, variables[i].shown, strlen(variables[i].shown));
				found = true;
			}
	return found;
}
