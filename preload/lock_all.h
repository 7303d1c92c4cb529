/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlockall() without the library's own memory. That memory is large and all but untouched: 130 MB of
 * addresses at the default period, of which a few hundred KB are in use. Without this hook a program
 * that locks all of its memory would make all of ours resident; or the kernel would refuse the call,
 * because of a limit (RLIMIT_MEMLOCK) that the program alone stays below.
 *
 * So our memory is locked as it is touched, and all else as the program asks: the pages of the program
 * are resident when the call returns. To find them the hook reads /proc/self/maps. Where that cannot be
 * read, the kernel locks all memory, ours too.
 *
 * Under a seccomp filter (seccomp_filter.h), which may allow mlockall alone, the hook makes no other
 * call: all memory is locked as it is touched, the program's too.
 */
#ifndef PRELOAD_LOCK_ALL_H
#define PRELOAD_LOCK_ALL_H

#include <stdbool.h>
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

/* New mappings may be locked. */
bool lock_all_was_called(void);

#endif
