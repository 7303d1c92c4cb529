/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/table/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"
#include "pprof/text/utf8.h"

/* Strings share blocks: a hundred thousand names do not need as many allocations. */
struct intern_block {
	struct intern_block *next;
	size_t used, size;
	char bytes[];
};

enum { BLOCK_BYTES = 64 * 1024 - sizeof(struct intern_block) };

void intern_fini(struct intern *in)
{
	struct intern_block *block, *next;

	for (block = in->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(in->strings);
	index_fini(&in->index);
	memset(in, 0, sizeof(*in));
}

static char *allocate(struct intern *in, size_t size)
{
	struct intern_block *block = in->blocks;
	char *at;

	if (!block || block->size - block->used < size) {
		size_t block_bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		block = malloc(sizeof(*block) + block_bytes);
		if (!block)
			return NULL;
		in->block_bytes += sizeof(*block) + block_bytes;
		block->used = 0;
		block->size = block_bytes;
		/* A large string fills its block at once; keep the half empty one in front. */
		if (size > BLOCK_BYTES / 2 && in->blocks) {
			block->next = in->blocks->next;
			in->blocks->next = block;
		} else {
			block->next = in->blocks;
			in->blocks = block;
		}
	}
	at = block->bytes + block->used;
	block->used += size;
	return at;
}

static int add_valid(struct intern *in, const char *bytes, size_t len, uint32_t *number)
{
	uint32_t hash = index_fold(index_mix_bytes(index_seed(), bytes, len));
	size_t cursor = index_start(hash);
	uint32_t found;
	char *copy;

	while ((found = index_next(&in->index, hash, &cursor))) {
		const char *old = in->strings[found - 1];

		if (!strncmp(old, bytes, len) && !old[len]) {
			*number = found;
			return 0;
		}
	}
	if (in->count == UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&in->strings, &in->capacity, (size_t)in->count + 1, sizeof(*in->strings)))
		return -ENOMEM;
	copy = allocate(in, len + 1);
	if (!copy || index_add(&in->index, hash, in->count + 1))
		return -ENOMEM;
	memcpy(copy, bytes, len);
	copy[len] = '\0';
	in->strings[in->count++] = copy;
	*number = in->count;
	return 0;
}

int intern_add(struct intern *in, const void *bytes, size_t len, uint32_t *number)
{
	char *clean;
	int err;

	*number = 0;
	if (!len)
		return 0;
	if (utf8_valid_prefix(bytes, len) == len && !memchr(bytes, 0, len))
		return add_valid(in, bytes, len, number);
	if (len > PTRDIFF_MAX / 3)
		return -ENOMEM;
	clean = malloc(UTF8_SANITIZED_MAX(len));
	if (!clean)
		return -ENOMEM;
	err = add_valid(in, clean, utf8_sanitize(clean, bytes, len), number);
	free(clean);
	return err;
}
