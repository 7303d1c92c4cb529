/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/table/idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

void idmap_fini(struct idmap *map)
{
	index_fini(&map->index);
	free(map->entries);
	memset(map, 0, sizeof(*map));
}

static uint32_t hash_id(uint64_t file_id)
{
	return index_fold(index_mix(index_seed(), file_id));
}

static const struct idmap_entry *find_entry(const struct idmap *map, uint64_t file_id)
{
	uint32_t hash, at;
	size_t cursor;

	if (file_id && file_id <= map->count && map->entries[file_id - 1].file_id == file_id)
		return &map->entries[file_id - 1];
	if (!map->index.count)
		return NULL;
	hash = hash_id(file_id);
	cursor = index_start(hash);
	while ((at = index_next(&map->index, hash, &cursor)))
		if (map->entries[at - 1].file_id == file_id)
			return &map->entries[at - 1];
	return NULL;
}

int idmap_add(struct idmap *map, uint64_t file_id, uint32_t id)
{
	if (!file_id)
		return -EINVAL;
	if (find_entry(map, file_id))
		return -EEXIST;
	if (map->count == UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&map->entries, &map->capacity, (size_t)map->count + 1, sizeof(*map->entries)))
		return -ENOMEM;
	if (file_id != (uint64_t)map->count + 1 && index_add(&map->index, hash_id(file_id), map->count + 1))
		return -ENOMEM;
	map->entries[map->count].file_id = file_id;
	map->entries[map->count].id = id;
	map->count++;
	return 0;
}

uint32_t idmap_find(const struct idmap *map, uint64_t file_id)
{
	const struct idmap_entry *entry = find_entry(map, file_id);

	return entry ? entry->id : 0;
}
