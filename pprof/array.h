/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing a plain C array: a pointer, a count and a capacity that the caller keeps side by side.
 */
#ifndef PPROF_ARRAY_H
#define PPROF_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

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

#endif
