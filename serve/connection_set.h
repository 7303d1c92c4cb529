/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections at one address that we listen on: which client has each, and which connection is closed
 * when there are too many. So no client can keep others out, however many connections it makes and however
 * slowly it writes.
 */
#ifndef SERVE_CONNECTION_SET_H
#define SERVE_CONNECTION_SET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	/* So many connections of the client with most may be without a request before its other connections
	 * are closed. */
	CONNECTION_SET_READING_MIN = 32,
};

enum connection_set_state {
	CONNECTION_SET_READING, /* its client has not sent a whole request */
	CONNECTION_SET_SENDING, /* its client reads an answer */
	CONNECTION_SET_WORKING, /* its client waits for an answer */
};

struct client_key {
	uint64_t family, number;
};

struct connection_set_member {
	struct connection_set_member *next, **link; /* link NULL: in no set */
	struct connection_set_client *client;
	struct client_key name; /* of the client */
	enum connection_set_state state;
	uint64_t since_ns; /* in that state */
};

struct connection_set {
	struct connection_set_member *first;
	size_t count;
};

/* Adds a connection, in the state READING. address: the client's. If it is NULL or that of a unix socket, the
 * user at the other end of fd is the client. For IPv6 the first 64 bits of the address are the client. 0 or
 * -ENOMEM. */
int connection_set_add(struct connection_set *set, struct connection_set_member *member,
    const struct sockaddr *address, int fd, uint64_t now_ns);

/* Does nothing if the member is in no set. */
void connection_set_remove(struct connection_set *set, struct connection_set_member *member);

/* The connection to close, among those of the client (or clients) with most connections: the one that has
 * been without a whole request for longest; if few are without a request, the one that has read its answer,
 * or waited for it, for longest. NULL: there is only `newest`, which stays. */
struct connection_set_member *connection_set_choose(
    const struct connection_set *set, const struct connection_set_member *newest);

#endif
