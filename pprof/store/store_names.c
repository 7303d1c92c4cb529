/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_names.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1 << 16 }; /* of all owners; owners are users, units and containers, not processes */

void store_names_fini(struct store_names *names)
{
	free(names->rows);
	*names = (struct store_names){0};
}

static uint64_t hash_of(const char *text)
{
	return index_mix_bytes(index_seed(), text, strlen(text));
}

static struct store_named *find(const struct store_names *names, uint64_t name)
{
	for (size_t i = 0; i < names->count; i++)
		if (names->rows[i].name == name)
			return &names->rows[i];
	return NULL;
}

static void forget(struct store_names *names, int64_t before_s)
{
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++)
		if (names->rows[i].time_s >= before_s)
			names->rows[kept++] = names->rows[i];
	names->count = kept;
}

static size_t count_of(const struct store_names *names, uint64_t owner)
{
	size_t count = 0;

	for (size_t i = 0; i < names->count; i++)
		count += names->rows[i].owner == owner;
	return count;
}

bool store_names_take(struct store_names *names, const struct store_names_limits *limits, const char *name,
    const char *owner, int64_t time_s)
{
	const struct store_named row = {hash_of(name), hash_of(owner), time_s};
	struct store_named *found = find(names, row.name);

	if (found) {
		found->time_s = time_s;
		return true;
	}
	forget(names, time_s - limits->keep_s);
	if (count_of(names, row.owner) >= limits->most || names->count == ROWS_MOST ||
	    array_reserve(&names->rows, &names->room, names->count + 1, sizeof(row)))
		return false;
	names->rows[names->count++] = row;
	return true;
}
