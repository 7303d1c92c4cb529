/* SPDX-License-Identifier: Apache-2.0 */
/* The children of running processes, their children, and so on: the workers of a server, for instance. */
#ifndef SAMPLER_LINUX_DESCENDANTS_H
#define SAMPLER_LINUX_DESCENDANTS_H

#include <stddef.h>
#include <sys/types.h>

struct descendant {
	pid_t pid, parent;
	size_t root; /* index of the process that it descends from */
};

/* A process of the machine. */
struct descendants_pair {
	pid_t pid, parent;
};

/*
 * Pure. Writes at most `most` descendants of `roots` to `found`, the nearest first and no root.
 * The process `without` (0: none) is left out, with all that descends from it. Returns how many there are,
 * which may be more than `most`; 0 also if no memory is left. The pairs may be wrong in any way, for they
 * were read one after the other; their order changes.
 */
size_t descendants_of(struct descendants_pair *pairs, size_t pair_count, const pid_t *roots,
    size_t root_count, pid_t without, struct descendant *found, size_t most);

/* The same of the processes that live now, as far as /proc shows them, without this process. */
size_t descendants_find(const pid_t *roots, size_t root_count, struct descendant *found, size_t most);

#endif
