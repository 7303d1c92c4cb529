/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/late_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int late_names_learn(struct late_names *n, uint64_t key, const char *name, int64_t time_ns)
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

const char *late_names_find(const struct late_names *n, uint64_t key)
{
	const struct late_names_entry *entry = find(n, key);

	return entry ? intern_at(&n->names, entry->name) : NULL;
}
