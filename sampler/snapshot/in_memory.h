/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots as shared memory, for clients of the control socket that want no file. Of one process one is made
 * at a time; all who come meanwhile get the next, since the one being made may be older than their request.
 */
#ifndef SAMPLER_SNAPSHOT_IN_MEMORY_H
#define SAMPLER_SNAPSHOT_IN_MEMORY_H

#include "sampler/snapshot/snapshot_series.h"

struct snapshot;

/* Who gives a snapshot to the client that waits for it. */
struct in_memory_giver {
	void (*give)(void *context, uint64_t asker, pid_t pid, int fd); /* fd: the callee's, or -errno */
	void *context;
};

/* False: too many wait. */
bool in_memory_want(struct in_memory *in_memory, uint64_t asker);
bool in_memory_is_due(const struct in_memory *in_memory);

/* The snapshot is for all who wait: they become its askers, and its sink is made. 0 or -errno. */
int in_memory_begin(struct in_memory *in_memory, struct snapshot *snapshot);

/* It is complete, or could not be written (-errno): its askers get a descriptor each. */
void in_memory_end(
    struct in_memory *in_memory, struct snapshot *snapshot, const struct in_memory_giver *giver, int error);

/* There will be none for those who wait. */
void in_memory_refuse(struct in_memory *in_memory, pid_t pid, const struct in_memory_giver *giver, int error);

#endif
