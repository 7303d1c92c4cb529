/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of one address that we listen on: whose each is, and which one gives way where there are
 * too many. So no client can keep others out, however many connections it makes and however slowly it writes.
 */
#ifndef SERVE_CROWD_H
#define SERVE_CROWD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	/* Of the connections of whoever has most, so many may be without a request before others give way. */
	CROWD_READING_MIN = 32,
};

enum crowd_state {
	CROWD_READING, /* its next request is not whole yet */
	CROWD_SENDING, /* its client takes an answer */
	CROWD_WORKING, /* its request waits for us */
};

struct crowd_name {
	uint64_t family, number;
};

struct crowd_member {
	struct crowd_member *next, **link; /* link NULL: it is in no crowd */
	struct crowd_client *client;
	struct crowd_name name; /* of the client */
	enum crowd_state state;
	uint64_t since_ns; /* in that state */
};

struct crowd {
	struct crowd_member *first;
	size_t count;
};

/* Reads from now on. address: of the client, NULL or of a unix socket: the user at the other end of fd is the
 * client; of IPv6 the first 64 bits are. 0 or -ENOMEM. */
int crowd_join(struct crowd *crowd, struct crowd_member *member, const struct sockaddr *address, int fd,
    uint64_t now_ns);
void crowd_leave(struct crowd *crowd, struct crowd_member *member); /* in no crowd: nothing is done */

/* Of the client with most connections, or the clients: the one that has not sent a whole request for longest;
 * if few are without, the one that takes its answer for longest, or waits for it. NULL: there is no other
 * than `newest`, who stays. */
struct crowd_member *crowd_gives_way(const struct crowd *crowd, const struct crowd_member *newest);

#endif
