/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the sampler, by the program or by a signal: words in the region, which the sampler reads at
 * every tick. Nothing here makes a system call. `place` is the caller's own place, already claimed.
 */
#ifndef PRELOAD_REQUEST_H
#define PRELOAD_REQUEST_H

#include "proto/region.h"

#include <stdbool.h>

/* When the region is opened. */
void request_open(bool paused);

/* For each place, when it is claimed: a forked child is paused if its parent was. */
void request_begin(struct region_place *place);

/* While paused, no samples are taken, but every free is still seen. Whether a block is sampled depends only
 * on the moment of its allocation, and the interval that a pause cuts short is memoryless, so there is no
 * bias. place may be NULL: the process is not profiled, or not yet. */
void request_pause(struct region_place *place, uint64_t now_ns, bool pause);
bool request_paused(void);

/* Requests a snapshot. Safe in a signal handler. */
void request_signalled(struct region_header *header, struct region_place *place);

/* The same for a process whose place is just being claimed: remembers it, and requests it when there is one.
 * Both are safe in a signal handler. */
void request_postpone(void);
void request_resume(struct region_header *header, struct region_place *place);

/* Requests a snapshot with a name (may be NULL). The sampler sets the word that is returned to *number once
 * it has taken the snapshot in memory, or refused it. Returns NULL if another thread is just making a
 * request. */
_Atomic uint32_t *request_snapshot(
    struct region_header *header, struct region_place *place, const char *name, uint32_t *number);

/* Of a request that has been answered, and of no later one of this process. */
bool request_refused(const struct region_place *place, uint32_t number);

#endif
