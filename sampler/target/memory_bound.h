/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of all processes' books together. A process may add to its own while they are smaller than what
 * is left: of n that want all they can get, each ends with 1/(n+1) of it, and as much stays free, so whoever
 * comes later still finds room. (Dynamic thresholds with alpha = 1: Choudhury and Hahne, "Dynamic Queue
 * Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998.)
 * Tables grow by no more than their own size at a time, so the sum stays below the bound.
 */
#ifndef SAMPLER_TARGET_MEMORY_BOUND_H
#define SAMPLER_TARGET_MEMORY_BOUND_H

#include <stdbool.h>
#include <stdint.h>

struct memory_bound {
	uint64_t max_bytes;  /* 0: no bound */
	uint64_t held_bytes; /* by all processes */
	uint64_t refused;    /* samples whose stack or row had no room */
	bool said;           /* that some were */
};

/* The bound where the sampler may have rss_max_bytes: half of it, for a snapshot takes up to as much again
 * for a while. 0, no limit given: 1 GiB, or a quarter of the machine's memory if that is less. */
uint64_t memory_bound_bytes(uint64_t rss_max_bytes);

/* Whether a process that holds own_bytes may add to them. */
bool memory_bound_allows(const struct memory_bound *bound, uint64_t own_bytes);

/* How much a process that holds own_bytes may have for what it must have, such as its maps: as much as other
 * books may grow to, but never less than an ordinary one needs. 0: no bound. */
uint64_t memory_bound_room(const struct memory_bound *bound, uint64_t own_bytes);

/* A process that held *own_bytes holds now_bytes. */
void memory_bound_note(struct memory_bound *bound, uint64_t *own_bytes, uint64_t now_bytes);

/* Tells the user, once, that samples are refused. */
void memory_bound_say(struct memory_bound *bound);

#endif
