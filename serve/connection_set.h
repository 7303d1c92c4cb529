/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of one address that we listen on: whose each is, and which one gives way where there are
 * too many. So no client can keep others out, however many connections it makes and however slowly it writes.
 */
#ifndef SERVE_CONNECTION_SET_H
#define SERVE_CONNECTION_SET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	/* Of the connections of whoever has most, so many may be without a request before others give way. */
	CONNECTION_SET_READING_MIN = 32,
};

enum connection_set_state {
	CONNECTION_SET_READING, /* its next request is not whole yet */
	CONNECTION_SET_SENDING, /* its client takes an answer */
	CONNECTION_SET_WORKING, /* its request waits for us */
};

struct client_key {
	uint64_t family, number;
};

struct connection_set_member {
	struct connection_set_member *next, **link; /* link NULL: it is in no set */
	struct connection_set_client *client;
	struct client_key name; /* of the client */
	enum connection_set_state state;
	uint64_t since_ns; /* in that state */
};

struct connection_set {
	struct connection_set_member *first;
	size_t count;
};

/* Reads from now on. address: of the client, NULL or of a unix socket: the user at the other end of fd is the
 * client; of IPv6 the first 64 bits are. 0 or -ENOMEM. */
int connection_set_add(struct connection_set *set, struct connection_set_member *member,
    const struct sockaddr *address, int fd, uint64_t now_ns);
void connection_set_remove(
    struct connection_set *set, struct connection_set_member *member); /* in no set: nothing is done */

/* Of the client with most connections, or the clients: the one that has not sent a whole request for longest;
 * if few are without, the one that takes its answer for longest, or waits for it. NULL: there is no other
 * than `newest`, who stays. */
struct connection_set_member *connection_set_choose(
    const struct connection_set *set, const struct connection_set_member *newest);

#endif
