/* SPDX-License-Identifier: Apache-2.0 */
/* Finds items by a number that several items may share: processes by pid, images by key. */
#ifndef SAMPLER_TARGET_TABLE_H
#define SAMPLER_TARGET_TABLE_H

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

#endif
