/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of memory that only grow, and an index of the strings in them.
 */
#include "sampler/symbol/string_pool.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"
#include "pprof/text/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024 };

struct chunk {
	struct chunk *next;
	size_t used_bytes;
	size_t size_bytes;
	max_align_t bytes[];
};

struct interned {
	const char *text;
	uint32_t length;
};

struct string_pool {
	struct chunk *chunks;
	struct interned *strings;
	size_t string_count, string_capacity;
	struct index by_text; /* ids: number + 1 */
	size_t bytes_left;
};

struct string_pool *string_pool_new(void)
{
	struct string_pool *names = calloc(1, sizeof(*names));

	if (names)
		names->bytes_left = SIZE_MAX;
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
	free(names->strings);
	index_fini(&names->by_text);
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

static const char *intern(struct string_pool *names, const char *text, size_t length)
{
	uint32_t hash = index_fold(index_mix_bytes(index_seed(), text, length)), id;
	size_t cursor = index_start(hash);
	char *copy;

	while ((id = index_next(&names->by_text, hash, &cursor))) {
		const struct interned *known = &names->strings[id - 1];

		if (known->length == length && memcmp(known->text, text, length) == 0)
			return known->text;
	}
	if (names->string_count >= UINT32_MAX - 1 ||
	    array_reserve(&names->strings, &names->string_capacity, names->string_count + 1,
	        sizeof(*names->strings)) != 0)
		return NULL;
	copy = chunk_take(names, length + 1, 1);
	if (!copy || index_add(&names->by_text, hash, (uint32_t)names->string_count + 1) != 0)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	names->strings[names->string_count++] = (struct interned){.text = copy, .length = (uint32_t)length};
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
