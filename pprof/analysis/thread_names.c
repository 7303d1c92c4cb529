/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/thread_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/filter.h"
#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "pprof/table/array.h"

void thread_names_fini(struct thread_names *n)
{
	index_fini(&n->index);
	intern_fini(&n->names);
	free(n->entries);
	memset(n, 0, sizeof(*n));
}

size_t thread_names_bytes(const struct thread_names *n)
{
	return index_bytes(&n->index) + intern_bytes(&n->names) + n->capacity * sizeof(*n->entries);
}

static bool read_labels(
    const struct profile *profile, size_t sample, struct profile_label *id, struct profile_label *name)
{
	if (!filter_label(profile, sample, "thread_name", name) || !name->str)
		name->str = NULL;
	return filter_label(profile, sample, "thread_id", id) && !id->str;
}

static uint64_t key_make(const char *session, int64_t tid)
{
	return index_mix(index_mix_bytes(index_seed(), session, strlen(session)), (uint64_t)tid);
}

static struct thread_names_entry *find(const struct thread_names *n, uint64_t key)
{
	size_t cursor = index_start(index_fold(key));
	uint32_t id;

	while ((id = index_next(&n->index, index_fold(key), &cursor)))
		if (n->entries[id - 1].key == key)
			return &n->entries[id - 1];
	return NULL;
}

static int learn(struct thread_names *n, uint64_t key, const char *name, int64_t time_ns)
{
	struct thread_names_entry *entry = find(n, key);
	uint32_t number;
	int err;

	if (entry && entry->time_ns >= time_ns)
		return 0;
	err = intern_add(&n->names, name, strlen(name), &number);
	if (err)
		return err;
	if (entry) {
		*entry = (struct thread_names_entry){key, time_ns, number};
		return 0;
	}
	if (n->count == UINT32_MAX ||
	    array_reserve(&n->entries, &n->capacity, (size_t)n->count + 1, sizeof(*n->entries)) ||
	    index_add(&n->index, index_fold(key), n->count + 1))
		return -ENOMEM;
	n->entries[n->count++] = (struct thread_names_entry){key, time_ns, number};
	return 0;
}

int thread_names_learn(struct thread_names *n, const struct profile *profile)
{
	struct origin origin;
	int err = 0;

	origin_read(&origin, profile);
	for (size_t i = 0; i < profile_sample_count(profile) && !err; i++) {
		struct profile_label id, name;

		if (read_labels(profile, i, &id, &name) && name.str)
			err = learn(n, key_make(origin.session, id.num), name.str, origin.time_ns);
	}
	return err;
}

const char *thread_names_of(
    const struct thread_names *n, const struct profile *profile, const char *session, size_t sample)
{
	struct profile_label id, name;
	const struct thread_names_entry *entry;

	if (!read_labels(profile, sample, &id, &name) || name.str)
		return name.str;
	entry = find(n, key_make(session, id.num));
	return entry ? intern_at(&n->names, entry->name) : NULL;
}
