/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/late_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/filter.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/table/array.h"

void late_names_fini(struct late_names *n)
{
	index_fini(&n->index);
	intern_fini(&n->names);
	free(n->entries);
	memset(n, 0, sizeof(*n));
}

size_t late_names_bytes(const struct late_names *n)
{
	return index_bytes(&n->index) + intern_bytes(&n->names) + n->capacity * sizeof(*n->entries);
}

static struct late_names_entry *find(const struct late_names *n, uint64_t key)
{
	size_t cursor = index_start(index_fold(key));
	uint32_t id;

	while ((id = index_next(&n->index, index_fold(key), &cursor)))
		if (n->entries[id - 1].key == key)
			return &n->entries[id - 1];
	return NULL;
}

/* Adds a name from a profile of that time, in place of the name from an older profile. 0, -ENOMEM or
 * -EOVERFLOW. */
static int learn(struct late_names *n, uint64_t key, const char *name, int64_t time_ns)
{
	struct late_names_entry *entry = find(n, key);
	uint32_t number;
	int err;

	if (entry && entry->time_ns >= time_ns)
		return 0;
	err = intern_add(&n->names, name, strlen(name), &number);
	if (err)
		return err;
	if (entry) {
		*entry = (struct late_names_entry){key, time_ns, number};
		return 0;
	}
	if (n->count == UINT32_MAX ||
	    array_reserve(&n->entries, &n->capacity, (size_t)n->count + 1, sizeof(*n->entries)) ||
	    index_add(&n->index, index_fold(key), n->count + 1))
		return -ENOMEM;
	n->entries[n->count++] = (struct late_names_entry){key, time_ns, number};
	return 0;
}

static const char *look_up(const struct late_names *n, uint64_t key)
{
	const struct late_names_entry *entry = find(n, key);

	return entry ? intern_at(&n->names, entry->name) : NULL;
}

/* ---- threads */

static bool read_labels(
    const struct profile *profile, size_t sample, struct profile_label *id, struct profile_label *name)
{
	if (!filter_label(profile, sample, "thread_name", name) || !name->str)
		name->str = NULL;
	return filter_label(profile, sample, "thread_id", id) && !id->str;
}

static uint64_t thread_key(const char *session, int64_t tid)
{
	return index_mix(index_mix_bytes(index_seed(), session, strlen(session)), (uint64_t)tid);
}

int late_names_learn_threads(struct late_names *n, const struct profile *profile)
{
	struct origin origin;
	int err = 0;

	origin_read(&origin, profile);
	for (size_t i = 0; i < profile_sample_count(profile) && !err; i++) {
		struct profile_label id, name;

		if (read_labels(profile, i, &id, &name) && name.str)
			err = learn(n, thread_key(origin.session, id.num), name.str, origin.time_ns);
	}
	return err;
}

const char *late_names_of_thread(
    const struct late_names *n, const struct profile *profile, const char *session, size_t sample)
{
	struct profile_label id, name;

	if (!read_labels(profile, sample, &id, &name) || name.str)
		return name.str;
	return look_up(n, thread_key(session, id.num));
}

/* ---- code that was made at run time */

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

int late_names_learn_code(struct late_names *n, const struct profile *profile)
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

uint64_t late_names_process(const struct profile *profile)
{
	struct origin origin;

	origin_read(&origin, profile);
	return process_key(&origin);
}

const char *late_names_of_code(
    const struct late_names *n, const struct profile *profile, uint64_t process, uint32_t id)
{
	const struct profile_location location = profile_location(profile, id);
	const char *name = name_at(profile, &location);

	if (!n->count || !name || !is_unnamed(name))
		return NULL;
	return look_up(n, index_mix(process, location.address));
}
