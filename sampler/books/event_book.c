/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/event_book.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"

#include <stdlib.h>

struct event_book {
	struct event_row *rows;
	size_t count, capacity;
	struct index index; /* of rows, ids from 1 */
	struct event_row total;
	bool full;
};

struct event_book *event_book_new(void)
{
	return calloc(1, sizeof(struct event_book));
}

void event_book_free(struct event_book *b)
{
	if (!b)
		return;
	free(b->rows);
	index_fini(&b->index);
	free(b);
}

void event_row_add(struct event_row *sum, const struct event_row *row)
{
	sum->samples += row->samples;
	sum->value += row->value;
	sum->bytes += row->bytes;
}

/* NULL if memory is short. */
static struct event_row *row_for(struct event_book *b, uint32_t stack, uint32_t tid)
{
	uint32_t hash = index_fold(index_mix(index_seed(), (uint64_t)tid << 32 | stack)), id;
	size_t cursor = index_start(hash);

	while ((id = index_next(&b->index, hash, &cursor)))
		if (b->rows[id - 1].stack == stack && b->rows[id - 1].tid == tid)
			return &b->rows[id - 1];
	if (b->full || b->count >= UINT32_MAX / 4 ||
	    array_reserve(&b->rows, &b->capacity, b->count + 1, sizeof(*b->rows)) != 0 ||
	    index_add(&b->index, hash, (uint32_t)b->count + 1) != 0)
		return NULL;
	b->rows[b->count] = (struct event_row){.stack = stack, .tid = tid};
	return &b->rows[b->count++];
}

bool event_book_add(struct event_book *b, const struct event_row *row)
{
	struct event_row *known = row_for(b, row->stack, row->tid);

	if (!known)
		return false;
	event_row_add(known, row);
	event_row_add(&b->total, row);
	return true;
}

void event_book_set_full(struct event_book *b, bool full)
{
	b->full = full;
}

uint64_t event_book_bytes(const struct event_book *b)
{
	return sizeof(*b) + b->capacity * sizeof(*b->rows) + index_bytes(&b->index);
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
