/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: where images that have just been executed find a region (proto/region.h has the protocol).
 *
 * A stock of spare regions lies ready; a pipe holds one ticket for each. An image reads a ticket and maps the
 * region that it names, without ever waiting for us. How many tickets are gone says which regions have been
 * claimed, since the pipe is first in, first out. The pipe is in packet mode (one ticket, one slot), no
 * larger than the stock and kept full, because the kernel wakes its writer only when it had been full:
 * region_pool_fd() then becomes writable.
 *
 * A burst of more programs than there are spares leaves some without one: they do not wait, they count
 * themselves in the ledger.
 */
#ifndef SAMPLER_REGION_REGION_POOL_H
#define SAMPLER_REGION_REGION_POOL_H

#include "sampler/region/region.h"

struct region_pool;

/* Returns NULL with errno set. */
struct region_pool *region_pool_new(const struct region_options *options);
void region_pool_free(struct region_pool *pool);

/* Value of the environment variable REGION_ENV, owned by the pool. */
const char *region_pool_env(const struct region_pool *pool);

/* To poll for EPOLLOUT, edge-triggered. */
int region_pool_fd(const struct region_pool *pool);

/* The region socket, to poll for EPOLLIN; -1: none, which is as it should be for a sampler that is not
 * root's, or else region_pool_socket_error says why (-errno). */
int region_pool_socket_fd(const struct region_pool *pool);
int region_pool_socket_error(const struct region_pool *pool);
void region_pool_knock(struct region_pool *pool); /* it is readable: region_pool_next will look */

/* The next region whose ticket was read or that somebody was handed at the socket, now the caller's (heap;
 * region_close and free it), or NULL. Restocks. */
struct region *region_pool_next(struct region_pool *pool);

/* Images that found no region so far: by their own word, or refused at the socket. */
uint64_t region_pool_unserved(const struct region_pool *pool);

/* Connections to the region socket that ended without the session's cookie. */
uint64_t region_pool_strangers(const struct region_pool *pool);

/* Changes what future regions start with. Spare ones are changed too. */
void region_pool_set_mode(struct region_pool *pool, enum region_mode mode);

/* The same for the sampling period. */
void region_pool_set_period(struct region_pool *pool, uint64_t period_bytes);

#endif
