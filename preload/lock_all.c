/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/lock_all.h"

#include "preload/raw_file.h"
#include "preload/seccomp_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1 /* Linux 4.4; include/uapi/asm-generic/mman-common.h */
#endif

enum { READ_BYTES = 4096 };

struct range {
	uintptr_t start, end;
};

static struct range own[LOCK_ALL_OWN]; /* end 0: there is none */

void lock_all_leave_out(enum lock_all_own kind, const void *start, size_t bytes)
{
	own[kind] = (struct range){(uintptr_t)start, (uintptr_t)start + bytes};
}

/* The part of a range that begins at `at` and is not ours; empty at its end. */
static struct range next_part(struct range whole, uintptr_t at)
{
	for (int i = 0; i < 2 * LOCK_ALL_OWN; i++) /* one of ours may begin where another ends */
		if (at >= own[i % LOCK_ALL_OWN].start && at < own[i % LOCK_ALL_OWN].end)
			at = own[i % LOCK_ALL_OWN].end;
	struct range part = {at, whole.end};
	for (int i = 0; i < LOCK_ALL_OWN; i++)
		if (own[i].end && own[i].start >= at && own[i].start < part.end)
			part.end = own[i].start;
	return part;
}

/* Calls `visit` for all that is mapped and not ours. False: it cannot be read. */
static bool each_other(void (*visit)(void *context, struct range part), void *context)
{
	char bytes[READ_BYTES];
	const int fd = raw_file_open("/proc/self/maps", O_RDONLY);

	if (fd < 0)
		return false;
	enum { START, END, REST } field = START;
	struct range whole = {0, 0};
	ssize_t got;
	while ((got = raw_file_read(fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < got; i++) {
			const char c = bytes[i];
			uintptr_t *number = field == START ? &whole.start : &whole.end;

			if (field == REST && c == '\n') {
				struct range part = next_part(whole, whole.start);

				for (; part.start < part.end; part = next_part(whole, part.end))
					visit(context, part);
				whole = (struct range){0, 0};
				field = START;
			} else if (field != REST && (c == '-' || c == ' ')) {
				field = c == '-' ? END : REST;
			} else if (field != REST) {
				*number = *number << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
			}
		}
	raw_file_close(fd);
	return got == 0;
}

static void add(void *context, struct range part)
{
	*(uint64_t *)context += part.end - part.start;
}

/* As mlockall does, without a word about pages that cannot be had. */
static void lock(void *context, struct range part)
{
	const int *flags = context;

	(void)syscall(
	    SYS_mlock2, part.start, part.end - part.start, *flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0);
}

/* Would the program be allowed to lock what it has, if it had not ours? */
static bool is_within_limit(void)
{
	struct rlimit limit;
	uint64_t bytes = 0;

	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && each_other(add, &bytes) && bytes <= limit.rlim_cur;
}

/* For mappings to come; the kernel has no call that makes them as they are without MCL_CURRENT. */
static int lock_future(int flags, int (*next)(int flags))
{
	return flags & MCL_FUTURE ? next(flags & ~MCL_CURRENT) : 0;
}

/* After mlockall, which is allowed. */
static bool is_rest_locked(int flags)
{
	return seccomp_filter_is_noted() || each_other(lock, &flags);
}

static _Atomic bool called;

bool lock_all_was_called(void)
{
	return atomic_load(&called);
}

int lock_all(int flags, int (*next)(int flags))
{
	const int saved = errno;

	atomic_store(&called, true);
	if (!(flags & MCL_CURRENT) || !own[LOCK_ALL_REGION].end)
		return next(flags);
	const int result = next(flags | MCL_ONFAULT);
	if (result == 0 && flags & MCL_ONFAULT)
		return 0;
	if (result != 0 && (errno != ENOMEM || seccomp_filter_is_noted() || !is_within_limit())) {
		errno = saved;
		return next(flags); /* its own answer */
	}
	errno = saved;
	if (lock_future(flags, next) != 0 || !is_rest_locked(flags)) {
		errno = saved;
		return next(flags);
	}
	errno = saved;
	return 0;
}
