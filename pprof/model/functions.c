/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions: finds an equal row, or appends one. */
#include "pprof/model/functions.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

void functions_fini(struct functions *f)
{
	index_fini(&f->index);
	free(f->rows);
	memset(f, 0, sizeof(*f));
}

static uint32_t hash_row(const struct functions_row *row)
{
	uint64_t hash = index_mix(index_seed(), (uint64_t)row->name << 32 | row->system_name);

	return index_fold(index_mix(index_mix(hash, row->filename), (uint64_t)row->start_line));
}

static bool same(const struct functions_row *a, const struct functions_row *b)
{
	return a->name == b->name && a->system_name == b->system_name && a->filename == b->filename &&
	    a->start_line == b->start_line;
}

int functions_add(struct functions *f, const struct functions_row *row, uint32_t *id)
{
	uint32_t hash = hash_row(row);
	size_t cursor = index_start(hash);

	while ((*id = index_next(&f->index, hash, &cursor)))
		if (same(&f->rows[*id - 1], row))
			return 0;
	if (f->count == UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&f->rows, &f->row_capacity, (size_t)f->count + 1, sizeof(*f->rows)) ||
	    index_add(&f->index, hash, f->count + 1))
		return -ENOMEM;
	f->rows[f->count] = *row;
	*id = ++f->count;
	return 0;
}
