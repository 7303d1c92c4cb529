/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlockall() without what is ours. Our memory is large and all but untouched: 125 MB of addresses at the
 * default period, of which a few hundred KB are in use. A program that locks all of its memory would have all of it resident, or
 * be refused because of a limit (RLIMIT_MEMLOCK) that it stays below by itself.
 *
 * So ours is locked as it is touched, and everything else as the program asks: its pages are resident when
 * the call returns. Who asks for that reads /proc/self/maps by it; where that cannot be read the kernel locks
 * all, ours too.
 *
 * Under a seccomp filter (seccomp_filter.h), which may allow mlockall alone, no other call is made:
 * everything is locked as it is touched, the program's pages too.
 */
#ifndef PRELOAD_LOCK_ALL_H
#define PRELOAD_LOCK_ALL_H

#include <stddef.h>

enum lock_all_own {
	LOCK_ALL_LIBRARY,
	LOCK_ALL_TABLES,
	LOCK_ALL_LAST_LEVEL,
	LOCK_ALL_MAPPINGS,
	LOCK_ALL_REGION,
	LOCK_ALL_GROWN_REGION,
	LOCK_ALL_OWN,
};

/* Says where our memory is; once for each kind, or again when it is elsewhere. */
void lock_all_leave_out(enum lock_all_own kind, const void *start, size_t bytes);

/* What `next`, the C library's mlockall, would return without us, and errno. */
int lock_all(int flags, int (*next)(int flags));

#endif
