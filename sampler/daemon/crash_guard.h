/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash-loop guard: counts deaths by SIGSEGV, SIGABRT, SIGBUS or SIGSYS soon after the hand-over, and
 * denies an executable when there are too many. We may not be the cause; but if we are, it ends here.
 *
 * A denial is of (executable, build id of the library, user): a new version of the library is tried again,
 * and nobody can have somebody else's services denied by executing their files and killing them. It is kept
 * in a file that outlives the daemon. To undo one, delete its line and reload.
 */
#ifndef SAMPLER_DAEMON_CRASH_GUARD_H
#define SAMPLER_DAEMON_CRASH_GUARD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CRASH_GUARD_DEATHS = 3,     /* so many ... */
	CRASH_GUARD_WITHIN_S = 600, /* ... within this time deny it */
	CRASH_GUARD_AGE_S = 30,     /* of those that died so soon after the hand-over */
	CRASH_GUARD_LIBRARY_BYTES = 41,
	/* Beyond, the oldest is forgotten of the user who has the most: nobody pushes out what is
	 * another's. */
	CRASH_GUARD_DENIED_MAX = 1024,
	CRASH_GUARD_SAVE_S = 5, /* between writes of the file */
};

struct crash_guard_denied {
	char *exe, *reason;
	char library[CRASH_GUARD_LIBRARY_BYTES]; /* build id in hexadecimal digits; "" unknown */
	uid_t uid;                               /* whose processes, by their effective user id */
	int64_t since_unix_ns;
	bool unsaved; /* the file has not got it yet */
};

struct crash_guard;

/* NULL: out of memory. */
struct crash_guard *crash_guard_new(void);
void crash_guard_free(struct crash_guard *guard); /* NULL is fine */

struct crash_guard_death {
	const char *exe, *library;
	uid_t uid;
	int signal;
	uint64_t age_ns; /* since the hand-over */
	uint64_t now_ns;
	int64_t now_unix_ns;
};

/* Notes the end of a process by a signal. The denial that follows from it; NULL: none. */
const struct crash_guard_denied *crash_guard_note(
    struct crash_guard *guard, const struct crash_guard_death *death);

/* NULL: it is not denied. */
const struct crash_guard_denied *crash_guard_find(
    const struct crash_guard *guard, const char *exe, const char *library, uid_t uid);

size_t crash_guard_count(const struct crash_guard *guard);
const struct crash_guard_denied *crash_guard_at(const struct crash_guard *guard, size_t index);

/* The file's text, for free(), and from it: lines that make no sense are passed over. NULL: out of memory. */
char *crash_guard_text(const struct crash_guard *guard, size_t *bytes);
int crash_guard_parse(
    struct crash_guard *guard, const char *text); /* in place of what it has; 0 or -ENOMEM */

/* 0 or -errno; no file is none denied. What is not saved yet stays. */
int crash_guard_load(struct crash_guard *guard, const char *path);
/* Writes the file, if it is not up to date: at most once in CRASH_GUARD_SAVE_S, unless it is the last time.
 * */
int crash_guard_save(struct crash_guard *guard, const char *path, uint64_t now_ns, bool last);

#endif
