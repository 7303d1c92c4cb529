/* SPDX-License-Identifier: Apache-2.0 */
/* The table of mappings: finds an equal row, or appends one. */
#include "pprof/model/mappings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

void mappings_fini(struct mappings *m)
{
	index_fini(&m->index);
	free(m->rows);
	memset(m, 0, sizeof(*m));
}

static uint32_t hash_row(const struct mappings_row *row)
{
	uint64_t hash = index_mix(index_mix(index_seed(), row->start), row->limit);

	hash = index_mix(index_mix(hash, row->file_offset), (uint64_t)row->filename << 32 | row->build_id);
	return index_fold(hash);
}

static bool same(const struct mappings_row *a, const struct mappings_row *b)
{
	return a->start == b->start && a->limit == b->limit && a->file_offset == b->file_offset &&
	    a->filename == b->filename && a->build_id == b->build_id;
}

int mappings_add(struct mappings *m, const struct mappings_row *row, uint32_t *id)
{
	uint32_t hash = hash_row(row);
	size_t cursor = index_start(hash);

	while ((*id = index_next(&m->index, hash, &cursor)))
		if (same(&m->rows[*id - 1], row))
			return 0;
	if (m->count == UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&m->rows, &m->row_capacity, (size_t)m->count + 1, sizeof(*m->rows)) ||
	    index_add(&m->index, hash, m->count + 1))
		return -ENOMEM;
	m->rows[m->count] = *row;
	*id = ++m->count;
	return 0;
}
