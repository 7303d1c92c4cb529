/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many processes that have ended may wait for their last profile. Each keeps its shared memory, its books
 * and some descriptors until then. On a machine where programs start and end all day, a slow writer would
 * take what the living processes need. Profiles over the limit are dropped and counted
 * (write/heap_source.h).
 */
#ifndef SAMPLER_CMD_DAEMON_EXIT_QUEUE_LIMIT_H
#define SAMPLER_CMD_DAEMON_EXIT_QUEUE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct target;

/* What the daemon may have, and what waits already. */
struct exit_queue_limit {
	uint64_t memory_bytes;                 /* the daemon's limit */
	uint64_t descriptors;                  /* the daemon's limit */
	uint64_t books_bytes, books_max_bytes; /* of all processes, the living ones included */
	uint64_t waiting;                      /* processes */
	uint64_t of_account; /* of these, with the account (target_account()) of the process that has ended */
	uint64_t of_service; /* of these, with its service */
	bool killed;         /* it was ended by a signal */
};

/* Whether one more process may wait. Pure. One service may have three quarters of the room, so that others
 * find some. This does not hold for a process that was killed, for its profile is wanted most. But
 * processes choose their names and how they end: so an account leaves an eighth to the others in any case. */
bool exit_queue_limit_has_room(const struct exit_queue_limit *room);

/* For struct scheduler_setup. */
bool exit_queue_limit_allows(void *context, const struct target *target);

#endif
