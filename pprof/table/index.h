/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the id of a table entry by its content: a hash table that holds ids only.
 *
 * The entries stay in the caller's table; a slot is 32 bits of hash and a 32-bit id (never 0), so a lookup
 * touches the entry only when the hashes agree. Open addressing, at most half full. The hash is seeded per
 * process: a hostile file cannot be made to collide on purpose.
 *
 *	size_t cursor = index_start(hash);
 *	while ((id = index_next(&ix, hash, &cursor)))
 *		if (entry id is the one wanted)
 *			return id;
 */
#ifndef PPROF_TABLE_INDEX_H
#define PPROF_TABLE_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct index {
	uint64_t *slots;
	size_t slot_count; /* power of two */
	size_t count;
};

/* All zero is an empty index too. */
void index_fini(struct index *ix);

/* Memory that it takes. */
static inline size_t index_bytes(const struct index *ix)
{
	return ix->slot_count * sizeof(*ix->slots);
}

/* Hashing: start from index_seed(), chain index_mix(), finish with index_fold(): the upper half has the
 * better bits. */
uint64_t index_seed(void);
uint64_t index_mix(uint64_t hash, uint64_t value);
uint64_t index_mix_bytes(uint64_t hash, const void *data, size_t len);
static inline uint32_t index_fold(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

static inline size_t index_start(uint32_t hash)
{
	return hash;
}

/* The next id with an equal hash, or 0. */
uint32_t index_next(const struct index *ix, uint32_t hash, size_t *cursor);

/* Adds an id without checking for duplicates. 0 or -ENOMEM. */
int index_add(struct index *ix, uint32_t hash, uint32_t id);

/* Removes an id that was added with this hash. Cursors of other lookups are not valid any more. */
void index_remove(struct index *ix, uint32_t hash, uint32_t id);

/*
 * ---- ids of a file, to our own
 *
 * Ids in a file may be any 64-bit numbers, but are nearly always 1..N in order; then the lookup is an array
 * access.
 */
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
