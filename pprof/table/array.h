/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing a plain C array: a pointer, a count and a capacity that the caller keeps side by side.
 */
#ifndef PPROF_TABLE_ARRAY_H
#define PPROF_TABLE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The number of elements of an array (not of a pointer). */
#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Makes room for need items. items is the address of the caller's pointer, *capacity its size in items. Grows
 * by half, so that n adds cost O(n) and at most a third of the memory is slack. 0 or -ENOMEM, with the array
 * as it was.
 */
static inline int array_reserve(void *items, size_t *capacity, size_t need, size_t item_bytes)
{
	void **slot = items;
	size_t wanted;
	void *grown;

	if (need <= *capacity && *slot)
		return 0;
	wanted = *capacity + *capacity / 2;
	if (wanted < need)
		wanted = need;
	if (wanted < 16)
		wanted = 16;
	if (wanted > PTRDIFF_MAX / item_bytes)
		return -ENOMEM;
	grown = realloc(*slot, wanted * item_bytes);
	if (!grown)
		return -ENOMEM;
	*slot = grown;
	*capacity = wanted;
	return 0;
}

/*
 * Number of items whose key, a uint64_t at key_offset, is below `key`, in an array sorted by key: the index
 * of the first item that is not below. items may be NULL if count is 0.
 */
static inline size_t array_lower_bound(
    const void *items, size_t count, size_t item_bytes, size_t key_offset, uint64_t key)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t at;

		memcpy(&at, (const char *)items + middle * item_bytes + key_offset, sizeof(at));
		if (at < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* By a field that is a uint64_t: how many items are below `value`, and how many are not above it. */
#define ARRAY_LOWER_BOUND(items, count, field, value) \
	array_lower_bound(items, count, sizeof(*(items)), ARRAY_KEY_OFFSET(items, field), value)
#define ARRAY_UPPER_BOUND(items, count, field, value) \
	((value) == UINT64_MAX ? (count) : ARRAY_LOWER_BOUND(items, count, field, (value) + 1))
#define ARRAY_KEY_OFFSET(items, field)           \
	(offsetof(__typeof__(*(items)), field) + \
	    0 * sizeof(char[sizeof((items)->field) == sizeof(uint64_t) ? 1 : -1]))

#endif
