/* SPDX-License-Identifier: Apache-2.0 */
/* Finds items by a number that several items may share: processes by pid, program runs by key. */
#ifndef SAMPLER_INTAKE_TABLE_H
#define SAMPLER_INTAKE_TABLE_H

#include "pprof/table/index.h"

struct table {
	struct index index; /* of entries, ids from 1 */
	struct table_entry {
		uint64_t key;
		void *item; /* borrowed */
	} * entries;        /* in no order; a removed one is replaced by the last */
	size_t count, capacity;
};

/* All zero is an empty table too. */
void table_fini(struct table *table);

/* 0 or -ENOMEM. */
int table_add(struct table *table, uint64_t key, void *item);

/* Does nothing if it is not there. */
void table_remove(struct table *table, uint64_t key, const void *item);

/* The next item with that key, or NULL. The cursor begins at 0, and is not valid after a change of the
 * table. */
void *table_next(const struct table *table, uint64_t key, size_t *cursor);

/* The last of the first *left items, and takes one from *left; NULL if there is none. */
static inline void *table_before(const struct table *table, size_t *left)
{
	if (*left > table->count)
		*left = table->count;
	return *left ? table->entries[--*left].item : NULL;
}

/* Runs the statement that follows for each item, the last one first. The statement may add items, which are
 * not visited, and may remove its own item. After it has removed others, an item may be visited twice. (`_on`
 * makes `break` end both loops.) */
#define table_each(type, item, table)                                                       \
	for (size_t item##_left = (table)->count, item##_on = 1; item##_on;)                \
		for (type *item = (item##_on = 0, table_before(table, &item##_left)); item; \
		     item = NULL, item##_on = 1)

#endif
