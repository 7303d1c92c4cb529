/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells when the memory cgroup of a process, or a cgroup above it, exceeds its soft limit.
 *
 *   cgroup v2   memory.high: the kernel counts how often the cgroup was above it (`high` in
 *               memory.events.local, before Linux 5.2 memory.events), so nothing is missed between two looks
 *   cgroup v1   has no memory.high. What comes nearest is memory.soft_limit_in_bytes, compared with
 *               memory.usage_in_bytes, and between two looks with memory.max_usage_in_bytes, which only shows
 *               a new maximum. An eventfd for the usage would need root (cgroup.event_control)
 *
 * A cgroup counts as above its limit until its usage is a tenth below the limit. The usage is the kernel's
 * figure, which includes the page cache. See Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst
 * of Linux.
 *
 * A look takes one or two reads of less than a microsecond for each cgroup with a limit. Limits are read
 * again once a second. All processes of a cgroup share one struct memory_high.
 */
#ifndef SAMPLER_LINUX_MEMORY_HIGH_H
#define SAMPLER_LINUX_MEMORY_HIGH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_HIGH_NO_LIMIT UINT64_MAX

enum { MEMORY_HIGH_LEVELS = 16 }; /* further levels are ignored */

enum memory_high_answer {
	MEMORY_HIGH_WATCHED,
	MEMORY_HIGH_UNSET,      /* no cgroup has such a limit; it may get one */
	MEMORY_HIGH_UNREADABLE, /* the cgroup's files are not there: not mounted, or a container hides them */
};

/* One of the levels: a cgroup, its parent, and so on. */
struct memory_high_level {
	char folder[PATH_MAX];
	size_t mount_bytes;   /* length of the mount point, which is in front of the cgroup's name */
	uint64_t limit_bytes; /* MEMORY_HIGH_NO_LIMIT: none */
	/* version 2: the events' file and none; version 1: usage and maximum; -1: not open */
	int fd, highest_fd;
	uint64_t seen; /* events, or the highest usage, at the last look */
	bool above;
};

struct memory_high {
	struct memory_high *next, **link; /* links of the list, see memory_high_get() */
	uint32_t users;
	int version; /* of the cgroup */
	char cgroup[PATH_MAX];
	enum memory_high_answer answer;
	struct memory_high_level levels[MEMORY_HIGH_LEVELS];
	size_t count;
	uint64_t looked_ns, refreshed_ns;
	uint64_t crossings; /* so far */
	bool above;         /* some level is above its limit */
	/* The last crossing: the level, and its usage then (0: unknown). */
	const struct memory_high_level *crossed;
	uint64_t crossed_bytes;
	bool told; /* for the caller: the user has been told told_answer */
	enum memory_high_answer told_answer;
};

/* The watch for a cgroup (as oom_watch_parse_cgroup() gives it): from the list of those in use, or a new one
 * at the list's head. mount: where the cgroups are mounted; NULL: the usual place. Returns NULL if out of
 * memory. */
struct memory_high *memory_high_get(
    struct memory_high **list, int version, const char *cgroup, const char *mount, uint64_t now_ns);
void memory_high_put(struct memory_high *watch); /* NULL is fine */

/* Looks for crossings, unless it has already done so at now_ns. */
void memory_high_look(struct memory_high *watch, uint64_t now_ns);

/* The innermost level with a limit, or NULL. */
const struct memory_high_level *memory_high_limited(const struct memory_high *watch);

/* The least of memory.max (v1: memory.limit_in_bytes) of the levels, or MEMORY_HIGH_NO_LIMIT. Reads the
 * files. */
uint64_t memory_high_hard_limit(const struct memory_high *watch);

/* "/system.slice/redis.service" */
const char *memory_high_name(const struct memory_high_level *level);

#endif
