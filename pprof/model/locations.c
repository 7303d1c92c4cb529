/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/locations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

void locations_fini(struct locations *l)
{
	index_fini(&l->index);
	free(l->rows);
	free(l->lines);
	memset(l, 0, sizeof(*l));
}

/* Field by field, here and below: struct profile_line has padding. */
static uint32_t hash_location(const struct profile_location *location)
{
	uint64_t hash = index_mix(index_seed(), (uint64_t)location->mapping << 1 | location->folded);
	size_t i;

	hash = index_mix(hash, location->address);
	for (i = 0; i < location->line_count; i++) {
		hash = index_mix(hash, location->lines[i].function);
		hash = index_mix(hash, (uint64_t)location->lines[i].line);
		hash = index_mix(hash, (uint64_t)location->lines[i].column);
	}
	return index_fold(hash);
}

static bool same(
    const struct locations *l, const struct locations_row *old, const struct profile_location *new)
{
	const struct profile_line *lines = l->lines + old->line;
	size_t i;

	if (old->address != new->address || old->mapping != new->mapping || old->folded != new->folded ||
	    old->line_count != new->line_count)
		return false;
	for (i = 0; i < new->line_count; i++)
		if (lines[i].function != new->lines[i].function || lines[i].line != new->lines[i].line ||
		    lines[i].column != new->lines[i].column)
			return false;
	return true;
}

static int append(struct locations *l, uint32_t hash, const struct profile_location *location)
{
	struct locations_row *row;

	if (l->count == UINT32_MAX || location->line_count > UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&l->rows, &l->row_capacity, (size_t)l->count + 1, sizeof(*l->rows)) ||
	    array_reserve(
	        &l->lines, &l->line_capacity, l->line_count + location->line_count, sizeof(*l->lines)) ||
	    index_add(&l->index, hash, l->count + 1))
		return -ENOMEM;
	row = &l->rows[l->count++];
	row->address = location->address;
	row->mapping = location->mapping;
	row->folded = location->folded;
	row->line = l->line_count;
	row->line_count = (uint32_t)location->line_count;
	if (location->line_count)
		memcpy(l->lines + l->line_count, location->lines, location->line_count * sizeof(*l->lines));
	l->line_count += location->line_count;
	return 0;
}

int locations_add(struct locations *l, const struct profile_location *location, uint32_t *id)
{
	uint32_t hash = hash_location(location);
	size_t cursor = index_start(hash);
	int err;

	while ((*id = index_next(&l->index, hash, &cursor)))
		if (same(l, &l->rows[*id - 1], location))
			return 0;
	err = append(l, hash, location);
	*id = err ? 0 : l->count;
	return err;
}

int locations_name(struct locations *l, uint32_t id, const struct profile_line *lines, size_t count)
{
	if (count > UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&l->lines, &l->line_capacity, l->line_count + count, sizeof(*l->lines)))
		return -ENOMEM;
	if (count)
		memcpy(l->lines + l->line_count, lines, count * sizeof(*lines));
	l->rows[id - 1].line = l->line_count;
	l->rows[id - 1].line_count = (uint32_t)count;
	l->line_count += count;
	return 0;
}
