/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of clients: libmicrohttpd, what it must not accept, and how long each may take.
 *
 * A client has READ_MS to send a whole request, and as long to send the next; then it is cut off, however
 * slowly it goes on writing. It must take an answer at SEND_BYTES_PER_S at least. Where there are too many,
 * one connection is cut off for each new one (connection_set.h).
 */
#ifndef SERVE_CONNECTION_H
#define SERVE_CONNECTION_H

#include "serve/connection_set.h"
#include "serve/event_loop.h"
#include "serve/listen_address.h"
#include "serve/request.h"

enum {
	CONNECTION_READ_MS = 30000,
	CONNECTION_SEND_MS = 60000,
	CONNECTION_SEND_BYTES_PER_S = 32 << 10,
	CONNECTION_HEADER_BYTES = 24 << 10, /* of a request, all in all */
	CONNECTIONS_MAX = 512,              /* of one address that we listen on */
	CONNECTION_OTHER_FDS = 128,         /* descriptors that are for other things */
};

/* Of answers that are being sent, each of which is there for one client alone. */
#define CONNECTION_SENDING_BYTES ((size_t)128 << 20)

struct web;

/* One address that we listen on. */
struct connection_listener {
	struct web *web;
	struct listen_address address;
	struct MHD_Daemon *daemon; /* NULL: not started */
	struct event_source source, incoming;
	char text[LISTEN_ADDRESS_BYTES];
	struct connection_set set;
	size_t most; /* of connections, CONNECTIONS_MAX if there are descriptors for so many */
};

struct web {
	struct server server;
	int epoll_fd;
	char own_name[256]; /* of this machine */
	struct connection *connections;
	size_t sending_bytes;
	bool stopped; /* the broker has ended */
};

/* Takes over fd, which listens. files: how many descriptors its connections may have. 0 or -errno. */
int connection_listen(struct web *web, struct connection_listener *listener, int fd, size_t files);

/* Does what is due on that address. Returns after how many ms at most to come again. */
int connection_run(struct connection_listener *listener);

/* Cuts off who is too slow, wakes requests whose seconds are over. Returns after how many ms at most to come
 * again. */
int connection_tend(struct web *web, uint64_t now_ns);

#endif
