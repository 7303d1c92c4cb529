/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region pool: gives each program run that was just executed a region (proto/region.h has the protocol).
 *
 * There is a stock of spare regions; a pipe holds one ticket for each. A program run reads a ticket and
 * maps the region that it names, without ever waiting for the sampler. The number of tickets taken tells
 * which regions have been claimed, since the pipe is first in, first out. The pipe is in packet mode (one
 * ticket, one slot), no larger than the stock and kept full, because the kernel wakes its writer only when
 * it had been full: region_pool_fd() then becomes writable.
 *
 * If more programs start than there are spares, some get none: they do not wait, but count themselves in the
 * ledger.
 */
#ifndef SAMPLER_INTAKE_REGION_POOL_H
#define SAMPLER_INTAKE_REGION_POOL_H

#include "sampler/intake/region.h"
#include "sampler/intake/region_socket.h"

struct region_pool;

/* Returns NULL with errno set. */
struct region_pool *region_pool_new(const struct region_options *options);
void region_pool_free(struct region_pool *pool);

/* Value of the environment variable REGION_ENV, owned by the pool. */
const char *region_pool_env(const struct region_pool *pool);

/* To poll for EPOLLOUT, edge-triggered. */
int region_pool_fd(const struct region_pool *pool);

/* The region socket, i < REGION_SOCKETS, to poll for EPOLLIN; -1: none. region_pool_socket_error says why
 * (-errno). */
int region_pool_socket_fd(const struct region_pool *pool, size_t i);
int region_pool_socket_error(const struct region_pool *pool);
void region_pool_knock(struct region_pool *pool); /* it is readable: region_pool_next will read it */

/* The next region whose ticket was read or that was handed out at the socket, or NULL. The caller owns it
 * (call region_close and free). Restocks. */
struct region *region_pool_next(struct region_pool *pool);

/* A region for a process that does not take a ticket: mapped, the caller's. NULL with errno set. */
struct region *region_pool_make(struct region_pool *pool);

/* Program runs that got no region so far: those that counted themselves, and those refused at the socket. */
uint64_t region_pool_unserved(const struct region_pool *pool);
/* Those among them whose region we could not map: our address space is limited (ulimit -v). */
uint64_t region_pool_unmapped(const struct region_pool *pool);

/* Connections to the region socket that ended without the session's cookie. */
uint64_t region_pool_strangers(const struct region_pool *pool);
/* Those that had sent nothing when too many others came. */
uint64_t region_pool_crowded_out(const struct region_pool *pool);

/* Changes what future regions start with. Spare ones are changed too. */
void region_pool_set_mode(struct region_pool *pool, enum region_mode mode);

/* The same for the sampling period. */
void region_pool_set_period(struct region_pool *pool, uint64_t period_bytes);

#endif
