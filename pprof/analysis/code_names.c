/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/code_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "pprof/table/array.h"

void code_names_fini(struct code_names *n)
{
	index_fini(&n->index);
	intern_fini(&n->names);
	free(n->entries);
	memset(n, 0, sizeof(*n));
}

size_t code_names_bytes(const struct code_names *n)
{
	return index_bytes(&n->index) + intern_bytes(&n->names) + n->capacity * sizeof(*n->entries);
}

/* The name of a location in memory that is no file's, as the profile has it; NULL: it is none. */
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

static struct code_names_entry *find(const struct code_names *n, uint64_t key)
{
	size_t cursor = index_start(index_fold(key));
	uint32_t id;

	while ((id = index_next(&n->index, index_fold(key), &cursor)))
		if (n->entries[id - 1].key == key)
			return &n->entries[id - 1];
	return NULL;
}

static int learn(struct code_names *n, uint64_t key, const char *name, int64_t time_ns)
{
	struct code_names_entry *entry = find(n, key);
	uint32_t number;
	int err;

	if (entry && entry->time_ns >= time_ns)
		return 0;
	err = intern_add(&n->names, name, strlen(name), &number);
	if (err)
		return err;
	if (entry) {
		*entry = (struct code_names_entry){key, time_ns, number};
		return 0;
	}
	if (n->count == UINT32_MAX ||
	    array_reserve(&n->entries, &n->capacity, (size_t)n->count + 1, sizeof(*n->entries)) ||
	    index_add(&n->index, index_fold(key), n->count + 1))
		return -ENOMEM;
	n->entries[n->count++] = (struct code_names_entry){key, time_ns, number};
	return 0;
}

int code_names_learn(struct code_names *n, const struct profile *profile)
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
			err = learn(n, index_mix(process, location.address), name, origin.time_ns);
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
    const struct code_names *n, const struct profile *profile, uint64_t process, uint32_t id)
{
	const struct profile_location location = profile_location(profile, id);
	const char *name = name_at(profile, &location);
	const struct code_names_entry *entry;

	if (!n->count || !name || !is_unnamed(name))
		return NULL;
	entry = find(n, index_mix(process, location.address));
	return entry ? intern_at(&n->names, entry->name) : NULL;
}
