/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/clock.h"

#include "preload/lookup.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

static _Atomic int clock_id = CLOCK_MONOTONIC_COARSE;
static _Atomic int counter_forbidden;
static int (*read_clock)(clockid_t clock, struct timespec *now);

/* The kernel's own function rather than the libc's: programs replace that one, for example by faketime's,
 * which allocates. */
void clock_open(int id, bool libc_allowed)
{
	void *found = lookup_vdso("__vdso_clock_gettime");
	if (!found)
		found = lookup_vdso("__kernel_clock_gettime");
	if (!found && libc_allowed) {
		struct lookup wish = {.name = "clock_gettime"};
		lookup_next(&wish, 1);
		found = wish.found;
	}
	read_clock = found ? (int (*)(clockid_t, struct timespec *))(uintptr_t)found : NULL;
	atomic_store(&clock_id, id);
}

void clock_choose(int id)
{
	if (id != CLOCK_MONOTONIC || atomic_load(&counter_forbidden))
		return;
	atomic_store(&clock_id, id);
	if (atomic_load(&counter_forbidden)) /* meanwhile */
		atomic_store(&clock_id, CLOCK_MONOTONIC_COARSE);
}

void clock_avoid_counter(void)
{
	atomic_store(&counter_forbidden, 1);
	atomic_store(&clock_id, CLOCK_MONOTONIC_COARSE);
}

uint64_t clock_read_ns(void)
{
	struct timespec now;
	if (!read_clock ||
	    read_clock((clockid_t)atomic_load_explicit(&clock_id, memory_order_relaxed), &now) != 0)
		return 0;
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}
