/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the ids of a file to ids of our own.
 *
 * Ids in a file are any 64-bit numbers, but nearly always 1..N in order; then the lookup is a look into an
 * array.
 */
#ifndef PPROF_IDMAP_H
#define PPROF_IDMAP_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/index.h"

struct idmap_entry {
	uint64_t file_id;
	uint32_t id;
};

struct idmap {
	struct index index; /* of the entries that are not in their place */
	struct idmap_entry *entries;
	size_t capacity;
	uint32_t count;
};

/* All zero is an empty map. */
void idmap_fini(struct idmap *map);

/* Memory that it takes. */
static inline size_t idmap_bytes(const struct idmap *map)
{
	return map->capacity * sizeof(*map->entries) + index_bytes(&map->index);
}

/* 0; -EEXIST for a file_id added before, -EINVAL for 0, -EOVERFLOW, -ENOMEM. */
int idmap_add(struct idmap *map, uint64_t file_id, uint32_t id);

/* The id, or 0. */
uint32_t idmap_find(const struct idmap *map, uint64_t file_id);

#endif
