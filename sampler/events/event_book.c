/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/events/event_book.h"

#include <stdlib.h>

struct event_book {
	struct event_row *rows;
	size_t count, capacity;
	uint32_t *hash; /* open addressing, at most half full; number of the row + 1, 0 empty */
	unsigned int bits;
	struct event_row total;
};

static size_t slot_of(const struct event_book *b, uint32_t stack, uint32_t tid)
{
	/* 2^64 / golden ratio: the upper bits of the product depend on all of the lower ones. */
	uint64_t key = ((uint64_t)tid << 32 | stack) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(key >> (64 - b->bits));
}

static size_t find(const struct event_book *b, uint32_t stack, uint32_t tid)
{
	size_t mask = ((size_t)1 << b->bits) - 1, at = slot_of(b, stack, tid);
	while (
	    b->hash[at] && (b->rows[b->hash[at] - 1].stack != stack || b->rows[b->hash[at] - 1].tid != tid))
		at = (at + 1) & mask;
	return at;
}

static bool grow(struct event_book *b)
{
	unsigned int bits = b->hash ? b->bits + 1 : 8;
	size_t capacity = (size_t)1 << (bits - 1);
	uint32_t *hash = calloc((size_t)1 << bits, sizeof(*hash));
	struct event_row *rows = hash ? reallocarray(b->rows, capacity, sizeof(*rows)) : NULL;
	if (!rows) {
		free(hash);
		return false;
	}
	free(b->hash);
	b->rows = rows;
	b->capacity = capacity;
	b->hash = hash;
	b->bits = bits;
	for (size_t i = 0; i < b->count; i++)
		b->hash[find(b, rows[i].stack, rows[i].tid)] = (uint32_t)i + 1;
	return true;
}

struct event_book *event_book_new(void)
{
	struct event_book *b = calloc(1, sizeof(*b));
	if (b && grow(b))
		return b;
	free(b);
	return NULL;
}

void event_book_free(struct event_book *b)
{
	if (!b)
		return;
	free(b->rows);
	free(b->hash);
	free(b);
}

static void sum(struct event_row *to, const struct event_row *row)
{
	to->samples += row->samples;
	to->value += row->value;
	to->bytes += row->bytes;
}

bool event_book_add(struct event_book *b, const struct event_row *row)
{
	size_t at = find(b, row->stack, row->tid);
	if (!b->hash[at]) {
		if (b->count == b->capacity) {
			if (b->count >= UINT32_MAX / 4 || !grow(b))
				return false;
			at = find(b, row->stack, row->tid);
		}
		b->rows[b->count++] = (struct event_row){.stack = row->stack, .tid = row->tid};
		b->hash[at] = (uint32_t)b->count;
	}
	sum(&b->rows[b->hash[at] - 1], row);
	sum(&b->total, row);
	return true;
}

size_t event_book_count(const struct event_book *b)
{
	return b->count;
}

const struct event_row *event_book_rows(const struct event_book *b)
{
	return b->rows;
}

struct event_row event_book_total(const struct event_book *b)
{
	return b->total;
}
