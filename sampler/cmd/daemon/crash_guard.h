/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash-loop guard counts deaths by SIGSEGV, SIGABRT, SIGBUS or SIGSYS soon after profiling began. When
 * an executable has too many, it is denied: it is not profiled any more. We may not be the cause; if we are,
 * the deaths end here.
 *
 * A denial is for an executable, a build id of the library and a user. So a new version of the library is
 * tried again, and no user can have the services of another denied by executing and killing their files.
 * Denials are kept in a file that outlives the daemon. To undo a denial, delete its line and reload.
 */
#ifndef SAMPLER_CMD_DAEMON_CRASH_GUARD_H
#define SAMPLER_CMD_DAEMON_CRASH_GUARD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CRASH_GUARD_DEATHS = 3,     /* so many ... */
	CRASH_GUARD_WITHIN_S = 600, /* ... within this time deny the executable */
	CRASH_GUARD_AGE_S = 30,     /* only deaths so soon after profiling began are counted */
	CRASH_GUARD_LIBRARY_BYTES = 41,
	/* Beyond, the oldest denial of the user who has the most is forgotten: no user pushes out the
	 * denials of another. */
	CRASH_GUARD_DENIED_MAX = 1024,
	CRASH_GUARD_SAVE_S = 5, /* between writes of the file */
};

struct crash_guard_denied {
	char *exe, *reason;
	char library[CRASH_GUARD_LIBRARY_BYTES]; /* build id in hexadecimal digits; "" unknown */
	uid_t uid;                               /* whose processes, by their effective user id */
	int64_t since_unix_ns;
	bool unsaved; /* it is not in the file yet */
};

struct crash_guard;

/* NULL: out of memory. */
struct crash_guard *crash_guard_new(void);
void crash_guard_free(struct crash_guard *guard); /* NULL is fine */

struct crash_guard_death {
	const char *exe, *library;
	uid_t uid;
	int signal;
	uint64_t age_ns; /* since profiling began */
	uint64_t now_ns;
	int64_t now_unix_ns;
};

/* Notes the end of a process by a signal. Returns the denial that follows from it, or NULL. */
const struct crash_guard_denied *crash_guard_note(
    struct crash_guard *guard, const struct crash_guard_death *death);

/* NULL if the executable is not denied. */
const struct crash_guard_denied *crash_guard_find(
    const struct crash_guard *guard, const char *exe, const char *library, uid_t uid);

size_t crash_guard_count(const struct crash_guard *guard);
const struct crash_guard_denied *crash_guard_at(const struct crash_guard *guard, size_t index);

/* The file's text, for free(). NULL if there is no memory. */
char *crash_guard_text(const struct crash_guard *guard, size_t *bytes);

/* Replaces the denials by those of the text. Lines that make no sense are passed over. 0 or -ENOMEM. */
int crash_guard_parse(struct crash_guard *guard, const char *text);

/* Replaces the denials by those of the file, except the ones that are not saved yet. A missing file is an
 * empty one. 0 or -errno. */
int crash_guard_load(struct crash_guard *guard, const char *path);

/* Writes the file if it is not up to date: at most once in CRASH_GUARD_SAVE_S, unless it is the last time.
 * 0 or -errno. */
int crash_guard_save(struct crash_guard *guard, const char *path, uint64_t now_ns, bool last);

/* The build id of the library that the process has mapped, in hexadecimal digits. "" if it has none that we
 * may read. */
void crash_guard_library(pid_t pid, char id[CRASH_GUARD_LIBRARY_BYTES]);

#endif
