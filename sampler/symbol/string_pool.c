/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of memory that only grow, and an open-addressed table of the strings in them (FNV-1a, linear
 * probing, at most half full).
 */
#include "sampler/symbol/string_pool.h"

#include "pprof/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, SLOTS_FIRST = 256 };

struct chunk {
	struct chunk *next;
	size_t used_bytes;
	size_t size_bytes;
	max_align_t bytes[];
};

struct slot {
	const char *text;
	uint32_t hash;
	uint32_t length;
};

struct string_pool {
	struct chunk *chunks;
	struct slot *slots;
	size_t slot_count; /* a power of two */
	size_t used_slots;
	size_t bytes_left;
};

struct string_pool *string_pool_new(void)
{
	struct string_pool *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->slot_count = SLOTS_FIRST;
	names->bytes_left = SIZE_MAX;
	names->slots = calloc(names->slot_count, sizeof(*names->slots));
	if (!names->slots) {
		free(names);
		return NULL;
	}
	return names;
}

void string_pool_free(struct string_pool *names)
{
	if (!names)
		return;
	for (struct chunk *chunk = names->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(names->slots);
	free(names);
}

void string_pool_limit(struct string_pool *names, size_t bytes)
{
	names->bytes_left = bytes;
}

static void *chunk_take(struct string_pool *names, size_t bytes, size_t align)
{
	struct chunk *chunk = names->chunks;
	size_t start = chunk ? (chunk->used_bytes + align - 1) & ~(align - 1) : 0;

	if (bytes > names->bytes_left)
		return NULL;
	names->bytes_left -= bytes;
	if (!chunk || start > chunk->size_bytes || chunk->size_bytes - start < bytes) {
		size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		if (size > PTRDIFF_MAX - sizeof(*chunk))
			return NULL;
		chunk = malloc(sizeof(*chunk) + size);
		if (!chunk)
			return NULL;
		chunk->size_bytes = size;
		chunk->next = names->chunks;
		names->chunks = chunk;
		start = 0;
	}
	chunk->used_bytes = start + bytes;
	return (char *)chunk->bytes + start;
}

void *string_pool_alloc(struct string_pool *names, size_t bytes)
{
	return chunk_take(names, bytes, _Alignof(max_align_t));
}

static bool is_clean_ascii(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f)
			return false;
	return true;
}

static uint32_t hash_of(const char *text, size_t length)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash;
}

static bool grow(struct string_pool *names)
{
	size_t count = names->slot_count * 2;
	struct slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < names->slot_count; i++) {
		const struct slot *old = &names->slots[i];
		size_t at = old->hash & (count - 1);

		if (!old->text)
			continue;
		while (slots[at].text)
			at = (at + 1) & (count - 1);
		slots[at] = *old;
	}
	free(names->slots);
	names->slots = slots;
	names->slot_count = count;
	return true;
}

static const char *intern(struct string_pool *names, const char *text, size_t length)
{
	uint32_t hash = hash_of(text, length);
	size_t at = hash & (names->slot_count - 1);
	char *copy;

	for (; names->slots[at].text; at = (at + 1) & (names->slot_count - 1)) {
		const struct slot *slot = &names->slots[at];

		if (slot->hash == hash && slot->length == length && memcmp(slot->text, text, length) == 0)
			return slot->text;
	}
	copy = chunk_take(names, length + 1, 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	names->slots[at] = (struct slot){.text = copy, .hash = hash, .length = (uint32_t)length};
	if (++names->used_slots * 2 > names->slot_count && !grow(names))
		return NULL;
	return copy;
}

const char *string_pool_add(struct string_pool *names, const char *text, size_t length)
{
	char clean[STRING_POOL_LENGTH_MAX];

	if (length > STRING_POOL_LENGTH_MAX)
		length = STRING_POOL_LENGTH_MAX;
	if (is_clean_ascii(text, length))
		return intern(names, text, length);
	memcpy(clean, text, length);
	utf8_disarm(clean, length);
	return intern(names, clean, length);
}
