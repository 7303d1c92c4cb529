/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's end of the region socket (preload/region_socket.h is the target's end). A program run of
 * another user asks here for a region.
 *
 * Anybody on the machine can connect, and any process that inherited the session's cookie may have a region.
 * So there are limits: on silent connections per user, and on regions held per process, per user and in all.
 * Enough descriptors are always left for the sampler's other work. Refusals are counted.
 */
#ifndef SAMPLER_INTAKE_REGION_SOCKET_H
#define SAMPLER_INTAKE_REGION_SOCKET_H

#include "sampler/intake/region.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct region_socket;

/* pool_path: as in REGION_ENV. NULL with *error = -errno, for instance if somebody else has bound the name.
 * */
struct region_socket *region_socket_new(const char *pool_path, uint64_t cookie, int *error);
/* NULL is fine. Close the regions that were handed out first. */
void region_socket_free(struct region_socket *listener);

/* To poll for EPOLLIN | EPOLLET: [0] with an abstract name; [1] a file (proto/region_pool.h), or -1 if there
 * is none. */
enum { REGION_SOCKETS = 2 };
int region_socket_fd(const struct region_socket *listener, size_t i);
/* The descriptor became readable: each region_socket_next reads from it until nobody waits. (One who cannot
 * be accepted, because no descriptor is left, keeps it readable.) */
void region_socket_knock(struct region_socket *listener);

/* A visitor that has sent the cookie and may have a region: its descriptor, to be passed to
 * region_socket_give at once; -1: none now. */
int region_socket_next(struct region_socket *listener);

/* Hands the region (NULL: none could be made) to that visitor and closes the visitor's descriptor. False: the
 * visitor did not take it, which is counted. Until region_close the region counts as held. */
bool region_socket_give(struct region_socket *listener, int visitor, struct region *region);

/* Sends the descriptors of a region to a visitor, without waiting. False: they were not taken. */
bool region_socket_send(int visitor, const struct region *region);

/* Visitors with the right cookie that got no region. */
uint64_t region_socket_refused(const struct region_socket *listener);
/* Connections without the cookie, and those that could not be accepted. */
uint64_t region_socket_strangers(const struct region_socket *listener);
/* Those that had sent nothing when too many others came. */
uint64_t region_socket_crowded_out(const struct region_socket *listener);

#endif
