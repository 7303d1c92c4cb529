/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/sample_clock.h"

#include "preload/lookup.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

static _Atomic int clock_id = CLOCK_MONOTONIC_COARSE;
static _Atomic int counter_forbidden; /* or not known to be allowed */
static int (*read_clock)(clockid_t clock, struct timespec *now);

/* By this thread, before we were there to notice, or by whoever started it: threads, children and programs
 * inherit it. The hook of prctl is not called. */
static bool is_counter_forbidden(void)
{
	unsigned int mode = 0;

	return syscall(SYS_prctl, PR_GET_TSC, &mode) == 0 && mode == PR_TSC_SIGSEGV;
}

/* The kernel's own function rather than the libc's: programs replace that one, for example by faketime's,
 * which allocates. */
void sample_clock_open(int id, enum clock_counter counter)
{
	void *found = lookup_vdso("__vdso_clock_gettime");

	if (!found)
		found = lookup_vdso("__kernel_clock_gettime");
	if (!found && counter == CLOCK_ASK) {
		struct lookup wish = {.name = "clock_gettime"};

		lookup_next(&wish, 1);
		found = wish.found;
	}
	read_clock = found ? (int (*)(clockid_t, struct timespec *))(uintptr_t)found : NULL;
	if (counter == CLOCK_UNKNOWN || (counter == CLOCK_ASK && is_counter_forbidden()))
		atomic_store(&counter_forbidden, 1);
	atomic_store(&clock_id, CLOCK_MONOTONIC_COARSE);
	sample_clock_choose(id);
}

void sample_clock_choose(int id)
{
	if (id != CLOCK_MONOTONIC || atomic_load(&counter_forbidden))
		return;
	atomic_store(&clock_id, id);
	if (atomic_load(&counter_forbidden)) /* meanwhile */
		atomic_store(&clock_id, CLOCK_MONOTONIC_COARSE);
}

int sample_clock_chosen(void)
{
	return atomic_load(&clock_id);
}

void sample_clock_avoid_counter(void)
{
	atomic_store(&counter_forbidden, 1);
	atomic_store(&clock_id, CLOCK_MONOTONIC_COARSE);
}

uint64_t sample_clock_read_ns(void)
{
	struct timespec now;

	if (!read_clock ||
	    read_clock((clockid_t)atomic_load_explicit(&clock_id, memory_order_relaxed), &now) != 0)
		return 0;
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}
