/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/table/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "pprof/table/array.h"

/* Odd constants without pattern (digits of the golden ratio and of sqrt 2). */
#define MULTIPLIER 0x9e3779b97f4a7c15ULL
#define INCREMENT  0x6a09e667f3bcc909ULL

/* The 16 random bytes that the kernel gives every process: no system call, the same for its whole life. */
uint64_t index_seed(void)
{
	static uint64_t seed; /* cached: getauxval() searches; 0, not read yet, is a valid seed too */
	const void *random;

	if (seed)
		return seed;
	random = (const void *)getauxval(AT_RANDOM);
	seed = INCREMENT;
	if (random)
		memcpy(&seed, random, sizeof(seed));
	return seed;
}

/* Both halves of a 64x64 multiplication, xored: every bit of the input reaches every bit of the output. */
uint64_t index_mix(uint64_t hash, uint64_t value)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ value) * MULTIPLIER;

	return ((uint64_t)product ^ (uint64_t)(product >> 64)) + INCREMENT;
}

uint64_t index_mix_bytes(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *at = data;
	uint64_t word;

	hash = index_mix(hash, len);
	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = index_mix(hash, word);
	}
	if (len) {
		word = 0;
		memcpy(&word, at, len);
		hash = index_mix(hash, word);
	}
	return hash;
}

void index_fini(struct index *ix)
{
	free(ix->slots);
	memset(ix, 0, sizeof(*ix));
}

uint32_t index_next(const struct index *ix, uint32_t hash, size_t *cursor)
{
	if (!ix->slot_count)
		return 0;
	for (;;) {
		uint64_t slot = ix->slots[*cursor & (ix->slot_count - 1)];

		if (!slot)
			return 0;
		++*cursor;
		if (slot >> 32 == hash)
			return (uint32_t)slot;
	}
}

static void put(uint64_t *slots, size_t slot_count, uint64_t slot)
{
	size_t at = slot >> 32;

	while (slots[at & (slot_count - 1)])
		at++;
	slots[at & (slot_count - 1)] = slot;
}

static int grow(struct index *ix)
{
	size_t slot_count = ix->slot_count ? ix->slot_count * 2 : 64;
	uint64_t *slots = calloc(slot_count, sizeof(*slots));
	size_t i;

	if (!slots)
		return -ENOMEM;
	for (i = 0; i < ix->slot_count; i++)
		if (ix->slots[i])
			put(slots, slot_count, ix->slots[i]);
	free(ix->slots);
	ix->slots = slots;
	ix->slot_count = slot_count;
	return 0;
}

int index_add(struct index *ix, uint32_t hash, uint32_t id)
{
	if (2 * (ix->count + 1) > ix->slot_count && grow(ix))
		return -ENOMEM;
	put(ix->slots, ix->slot_count, (uint64_t)hash << 32 | id);
	ix->count++;
	return 0;
}

/* Linear probing: an entry that could not be found across the gap moves into it (Knuth, TAOCP 3, 6.4,
 * Algorithm R). */
void index_remove(struct index *ix, uint32_t hash, uint32_t id)
{
	size_t mask = ix->slot_count - 1, gap = hash & mask, at;

	while (ix->slots[gap] != ((uint64_t)hash << 32 | id))
		gap = (gap + 1) & mask;
	ix->slots[gap] = 0;
	ix->count--;
	for (at = (gap + 1) & mask; ix->slots[at]; at = (at + 1) & mask) {
		size_t home = (ix->slots[at] >> 32) & mask;

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		ix->slots[gap] = ix->slots[at];
		ix->slots[at] = 0;
		gap = at;
	}
}

/* ---- ids of a file */

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
