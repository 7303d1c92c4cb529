/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/code_names.h"

#include <stdbool.h>
#include <string.h>

#include "pprof/model/origin.h"
#include "pprof/model/profile.h"

/* The name of a location in memory that belongs to no file, as the profile has it. NULL if the location is in
 * a file. */
static const char *name_at(const struct profile *profile, const struct profile_location *location)
{
	const char *file = location->mapping ? profile_mapping(profile, location->mapping).filename : "";

	if (!location->address || location->line_count != 1 || *file == '/')
		return NULL;
	return profile_function(profile, location->lines[0].function).name;
}

static bool is_unnamed(const char *name)
{
	return strcmp(name, "[jit]") == 0;
}

static uint64_t process_key(const struct origin *origin)
{
	const uint64_t session = index_mix_bytes(index_seed(), origin->session, strlen(origin->session));

	return index_mix(index_mix(session, (uint64_t)origin->pid), (uint64_t)origin->start_ns);
}

int code_names_learn(struct late_names *n, const struct profile *profile)
{
	struct origin origin;
	uint64_t process;
	int err = 0;

	origin_read(&origin, profile);
	process = process_key(&origin);
	if (!origin_has_process(&origin))
		return 0;
	for (uint32_t id = 1; id <= profile_location_count(profile) && !err; id++) {
		const struct profile_location location = profile_location(profile, id);
		const char *name = name_at(profile, &location);

		if (name && *name && !is_unnamed(name))
			err = late_names_learn(n, index_mix(process, location.address), name, origin.time_ns);
	}
	return err;
}

uint64_t code_names_process(const struct profile *profile)
{
	struct origin origin;

	origin_read(&origin, profile);
	return process_key(&origin);
}

const char *code_names_of(
    const struct late_names *n, const struct profile *profile, uint64_t process, uint32_t id)
{
	const struct profile_location location = profile_location(profile, id);
	const char *name = name_at(profile, &location);

	if (!n->count || !name || !is_unnamed(name))
		return NULL;
	return late_names_find(n, index_mix(process, location.address));
}
