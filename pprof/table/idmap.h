/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps the ids of a file to our own.
 *
 * Ids in a file may be any 64-bit numbers, but are nearly always 1..N in order; then the lookup is an array
 * access.
 */
#ifndef PPROF_TABLE_IDMAP_H
#define PPROF_TABLE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

#include "pprof/table/index.h"

struct idmap_entry {
	uint64_t file_id;
	uint32_t id;
};

struct idmap {
	struct index index; /* of entries with an id that is not their position */
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
