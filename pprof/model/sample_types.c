/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/sample_types.h"

#include "pprof/model/profile.h"

#include <stdint.h>
#include <string.h>

const struct sample_type_row sample_types[SAMPLE_TYPE_COUNT] = {
#define ROW(constant, name, unit, is_total) {name, unit, is_total},
    SAMPLE_TYPES(ROW)
#undef ROW
};

bool sample_type_is(enum sample_type type, const char *name)
{
	static const char in_use[] = "inuse_";
	const char *own = sample_types[type].name;
	const size_t length = sizeof(in_use) - 1;

	return strcmp(name, own) == 0 ||
	    (strncmp(own, in_use, length) == 0 && strcmp(name, own + length) == 0);
}

bool sample_type_is_total(const char *name)
{
	for (size_t i = 0; i < SAMPLE_TYPE_COUNT; i++)
		if (sample_types[i].is_total && strcmp(name, sample_types[i].name) == 0)
			return true;
	return false;
}

size_t sample_type_find(const struct profile *profile, enum sample_type type)
{
	for (size_t i = 0; i < profile_sample_type_count(profile); i++)
		if (sample_type_is(type, profile_sample_type(profile, i).type))
			return i;
	return SIZE_MAX;
}
