/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections at one address that we listen on. The set knows the client of each connection, and chooses
 * the connection to close when there are too many. So no client can keep others out, neither by many
 * connections nor by slow ones.
 */
#ifndef SERVE_CONNECTION_SET_H
#define SERVE_CONNECTION_SET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	/* If the client with most connections has fewer than this without a whole request, one of its other
	 * connections is closed instead. */
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

/*
 * Chooses the connection to close, of the client with most connections (of all such clients, if several have
 * as many). It is the connection that has been without a whole request for longest. If only few are without
 * one, it is the connection that has taken longest to read its answer, or else to wait for it. `newest` is
 * never chosen. NULL: there is no other.
 */
struct connection_set_member *connection_set_choose(
    const struct connection_set *set, const struct connection_set_member *newest);

#endif
