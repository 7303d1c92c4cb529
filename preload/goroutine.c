/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/goroutine.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Go's heap is one range, which grows at its end, or a few. */
enum { RANGES = 8 };

struct range {
	_Atomic uintptr_t low; /* 0: free */
	_Atomic uintptr_t end; /* not above low: empty */
};

static struct range ranges[RANGES];
static bool is_open;
uintptr_t goroutine_memory_known;

void goroutine_open(void)
{
	is_open = true;
}

void goroutine_mapped(const void *start, size_t bytes)
{
	const uintptr_t low = (uintptr_t)start, end = low + bytes;

	if (!is_open || !low || end <= low || goroutine_memory_end(low) >= end)
		return;
	for (size_t i = 0; i < RANGES; i++) {
		uintptr_t behind = low, nobody = 0;

		if (atomic_compare_exchange_strong(&ranges[i].end, &behind, end))
			return;
		if (atomic_compare_exchange_strong(&ranges[i].low, &nobody, low)) {
			atomic_store(&ranges[i].end, end);
			goroutine_memory_known = 1;
			return;
		}
	}
}

void goroutine_unmapped(const void *start, size_t bytes)
{
	const uintptr_t low = (uintptr_t)start, end = low + bytes;

	for (size_t i = 0; i < RANGES; i++) {
		uintptr_t now = atomic_load(&ranges[i].end);

		while (low < now && end > atomic_load(&ranges[i].low) &&
		    !atomic_compare_exchange_weak(&ranges[i].end, &now, low))
			;
	}
}

uintptr_t goroutine_memory_end(uintptr_t address)
{
	for (size_t i = 0; i < RANGES; i++) {
		const uintptr_t end = atomic_load(&ranges[i].end);

		if (address < end && address >= atomic_load(&ranges[i].low))
			return end;
	}
	return 0;
}
