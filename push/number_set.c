/* SPDX-License-Identifier: Apache-2.0 */
#include "push/number_set.h"

#include "pprof/table/array.h"

#include <stdlib.h>

void number_set_fini(struct number_set *set)
{
	index_fini(&set->index);
	free(set->numbers);
	*set = (struct number_set){0};
}

static uint32_t hash_of(uint64_t number)
{
	return index_fold(index_mix(index_seed(), number));
}

bool number_set_has(const struct number_set *set, uint64_t number)
{
	uint32_t hash = hash_of(number), id;
	size_t cursor = index_start(hash);

	while ((id = index_next(&set->index, hash, &cursor)))
		if (set->numbers[id - 1] == number)
			return true;
	return false;
}

void number_set_add(struct number_set *set, uint64_t number)
{
	if (number_set_has(set, number) || set->count == UINT32_MAX ||
	    array_reserve(&set->numbers, &set->room, (size_t)set->count + 1, sizeof(*set->numbers)))
		return;
	set->numbers[set->count] = number;
	if (!index_add(&set->index, hash_of(number), set->count + 1))
		set->count++;
}
