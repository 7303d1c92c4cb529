/* SPDX-License-Identifier: Apache-2.0 */
#include "push/version_set.h"

#include "pprof/table/array.h"

#include <stdlib.h>

void version_set_fini(struct version_set *set)
{
	index_fini(&set->index);
	free(set->versions);
	*set = (struct version_set){0};
}

static uint32_t hash_of(uint64_t version)
{
	return index_fold(index_mix(index_seed(), version));
}

bool version_set_has(const struct version_set *set, uint64_t version)
{
	uint32_t hash = hash_of(version), id;
	size_t cursor = index_start(hash);

	while ((id = index_next(&set->index, hash, &cursor)))
		if (set->versions[id - 1] == version)
			return true;
	return false;
}

void version_set_add(struct version_set *set, uint64_t version)
{
	if (version_set_has(set, version) || set->count == UINT32_MAX ||
	    array_reserve(&set->versions, &set->room, (size_t)set->count + 1, sizeof(*set->versions)))
		return;
	set->versions[set->count] = version;
	if (!index_add(&set->index, hash_of(version), set->count + 1))
		set->count++;
}
