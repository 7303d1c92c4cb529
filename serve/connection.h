/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of clients: libmicrohttpd, what it must not accept, and how long each connection may take.
 *
 * A connection is for one request. What comes after the request is never read as another one, even where a
 * proxy in front of us takes the request to be shorter or longer than libmicrohttpd does, which is lenient.
 *
 * A client has READ_MS to send a whole request. Then the connection is closed, even if the client goes on
 * writing slowly. The client must read an answer at SEND_BYTES_PER_S or faster. If there are too many
 * connections, one is closed for each new one (connection_set.h).
 */
#ifndef SERVE_CONNECTION_H
#define SERVE_CONNECTION_H

#include "serve/connection_set.h"
#include "serve/listen_address.h"
#include "serve/request.h"

#include <stdint.h>

/* ---- the loop: descriptors that the web process waits for, and what is called when one is ready */

struct event_source {
	int fd; /* -1: not waited for */
	void (*ready)(struct event_source *source, uint32_t events);
};

/* events: as for epoll_ctl(2). 0 or -errno. */
int event_loop_add(int epoll_fd, struct event_source *source, int fd, uint32_t events);
void event_loop_remove(int epoll_fd, struct event_source *source);

/* Waits once, timeout_ms at most, and calls ready() of sources that are ready. ready() may remove its own
 * source and others; removed sources are not called. 0 or -errno. */
int event_loop_wait(int epoll_fd, int timeout_ms);

/* ---- connections */

enum {
	CONNECTION_READ_MS = 30000,
	CONNECTION_SEND_MS = 60000,
	CONNECTION_SEND_BYTES_PER_S = 32 << 10,
	CONNECTION_HEADER_BYTES = 24 << 10, /* of a request, all in all */
	CONNECTIONS_MAX = 512,              /* at one address that we listen on */
	CONNECTION_OTHER_FDS = 128,         /* descriptors for all other things */
};

/* All answers that are being sent and that only one client gets. */
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
	size_t most; /* connections; fewer than CONNECTIONS_MAX if there are too few descriptors */
};

struct web {
	struct server server;
	int epoll_fd;
	char own_name[256]; /* of this machine */
	struct connection *connections;
	size_t sending_bytes;
	bool stopped; /* the broker has ended */
};

/* Takes over fd, which listens. files: the number of descriptors for its connections. 0 or -errno. */
int connection_listen(struct web *web, struct connection_listener *listener, int fd, size_t files);

/* Does what is due at that address. Returns after how many ms, at most, to call again. */
int connection_run(struct connection_listener *listener);

/* Cuts off clients that are too slow, and wakes requests when their seconds are over. Returns after how many
 * ms, at most, to call again. */
int connection_tend(struct web *web, uint64_t now_ns);

#endif
