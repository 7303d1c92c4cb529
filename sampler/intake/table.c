/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/table.h"

#include "pprof/table/array.h"

#include <string.h>

static uint32_t hash_of(uint64_t key)
{
	return index_fold(index_mix(index_seed(), key));
}

void table_fini(struct table *table)
{
	index_fini(&table->index);
	free(table->entries);
	memset(table, 0, sizeof(*table));
}

int table_add(struct table *table, uint64_t key, void *item)
{
	size_t count = table->count + 1;

	if (array_reserve(&table->entries, &table->capacity, count, sizeof(*table->entries)) != 0 ||
	    index_add(&table->index, hash_of(key), (uint32_t)count) != 0)
		return -ENOMEM;
	table->entries[table->count++] = (struct table_entry){key, item};
	return 0;
}

/* The number of the next entry with that key, from 1; 0 if there is none. */
static uint32_t next(const struct table *table, uint64_t key, size_t *cursor)
{
	uint32_t hash = hash_of(key), id;
	size_t at = index_start(hash) + *cursor;

	do
		id = index_next(&table->index, hash, &at);
	while (id && table->entries[id - 1].key != key);
	*cursor = at - index_start(hash);
	return id;
}

void *table_next(const struct table *table, uint64_t key, size_t *cursor)
{
	uint32_t id = next(table, key, cursor);

	return id ? table->entries[id - 1].item : NULL;
}

void table_remove(struct table *table, uint64_t key, const void *item)
{
	size_t cursor = 0;
	uint32_t id, last = (uint32_t)table->count;

	while ((id = next(table, key, &cursor)) && table->entries[id - 1].item != item)
		continue;
	if (!id)
		return;
	index_remove(&table->index, hash_of(key), id);
	if (id != last) {
		uint32_t hash = hash_of(table->entries[last - 1].key);

		index_remove(&table->index, hash, last);
		(void)index_add(&table->index, hash, id); /* cannot fail: an entry was just removed */
		table->entries[id - 1] = table->entries[last - 1];
	}
	table->count--;
}
