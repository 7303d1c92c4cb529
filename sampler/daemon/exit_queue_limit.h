/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many processes that have ended may wait for their last profile. Each holds its shared memory, its books
 * and some descriptors until then, so a writer that is too slow, on a machine where programs start and end
 * all day, would take what the living need. What is over the bound is dropped and counted
 * (snapshot/heap_source.h).
 */
#ifndef SAMPLER_DAEMON_EXIT_QUEUE_LIMIT_H
#define SAMPLER_DAEMON_EXIT_QUEUE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct target;

/* What there is, and what waits already. */
struct exit_queue_limit {
	uint64_t memory_bytes;                 /* of the daemon: its limit */
	uint64_t descriptors;                  /* that it may have */
	uint64_t books_bytes, books_max_bytes; /* of all processes, also of the living */
	/* that wait, and those of the account (target_account()) and service of the one that has ended */
	uint64_t waiting, of_account, of_service;
	bool killed; /* it was ended by a signal */
};

/* Pure. One service may have three quarters of the room, so that others find some; what was killed need not
 * mind that, for a profile is most wanted of it. But names and ends are the processes' own: an account leaves
 * an eighth to the others in any case. */
bool exit_queue_limit_has_room(const struct exit_queue_limit *room);

/* For struct scheduler_setup. */
bool exit_queue_limit_allows(void *context, const struct target *target);

#endif
