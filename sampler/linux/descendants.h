/* SPDX-License-Identifier: Apache-2.0 */
/* The children of running processes, their children, and so on: the workers of a server, for instance. */
#ifndef SAMPLER_LINUX_DESCENDANTS_H
#define SAMPLER_LINUX_DESCENDANTS_H

#include <stddef.h>
#include <sys/types.h>

struct descendant {
	pid_t pid, parent;
	size_t root; /* index of the root that it descends from */
};

/* A process of the machine. */
struct descendants_pair {
	pid_t pid, parent;
};

/*
 * Pure. Writes at most `most` descendants of `roots` to `found`, the nearest first and no root. Leaves out
 * the process `without` (0: none) and its descendants. Returns the number of descendants, which may be more
 * than `most`; 0 also if out of memory. The pairs were read one after the other, so they may contradict each
 * other in any way. Their order changes.
 */
size_t descendants_of(struct descendants_pair *pairs, size_t pair_count, const pid_t *roots,
    size_t root_count, pid_t without, struct descendant *found, size_t most);

/* The same for the processes that live now and are in /proc, without this process. */
size_t descendants_find(const pid_t *roots, size_t root_count, struct descendant *found, size_t most);

#endif
