/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lobby: where images that have just been executed find a region (proto/region.h has the protocol).
 *
 * A stock of spare regions lies ready; a pipe holds one ticket for each. An image reads a ticket and maps the
 * region that it names, without ever waiting for us. How many tickets are gone says which regions have been
 * claimed, since the pipe is first in, first out. The pipe is in packet mode (one ticket, one slot), no
 * larger than the stock and kept full, because the kernel wakes its writer only when it had been full:
 * lobby_fd() then becomes writable.
 *
 * A burst of more programs than there are spares leaves some without one: they do not wait, they count
 * themselves in the ledger.
 */
#ifndef SAMPLER_LOBBY_H
#define SAMPLER_LOBBY_H

#include "sampler/region.h"

struct lobby_state;

/* Returns NULL with errno set. */
struct lobby_state *lobby_new(const struct region_options *options);
void lobby_free(struct lobby_state *lobby);

/* Value of the environment variable REGION_ENV, owned by the lobby. */
const char *lobby_env(const struct lobby_state *lobby);

/* To poll for EPOLLOUT, edge-triggered. */
int lobby_fd(const struct lobby_state *lobby);

/* The door's socket (preload/door.h), to poll for EPOLLIN; -1: none. */
int lobby_door_fd(const struct lobby_state *lobby);
void lobby_knock(struct lobby_state *lobby); /* it is readable: lobby_next will look */

/* The next region whose ticket was read or that somebody was handed at the door, now the caller's (heap;
 * region_close and free it), or NULL. Restocks. */
struct region *lobby_next(struct lobby_state *lobby);

/* Images that found no region so far, by their own word. */
uint64_t lobby_unserved(const struct lobby_state *lobby);

/* Changes what future regions start with. Spare ones are changed too. */
void lobby_set_mode(struct lobby_state *lobby, enum region_mode mode);

/* The same for the sampling period. */
void lobby_set_period(struct lobby_state *lobby, uint64_t period_bytes);

#endif
