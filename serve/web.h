/* SPDX-License-Identifier: Apache-2.0 */
/* The web process: reads everything that comes from a network, in a sandbox. */
#ifndef SERVE_WEB_H
#define SERVE_WEB_H

#include "serve/client.h"
#include "serve/command_line.h"
#include "serve/listen_address.h"
#include "serve/request.h"

#include <stddef.h>
#include <stdint.h>

struct web_setup {
	const struct command_line *line;
	const struct listen_address *addresses; /* of the sockets that listen */
	const int *fds;                         /* sockets that listen; the callee's to close */
	size_t count;
	const struct token *token;
	int broker_fd; /* the callee's to close */
};

/* Serves until the broker ends. Returns the exit status. */
int web_run(const struct web_setup *setup);

/*
 * ---- its sandbox
 *
 * What the web process may still do: read and write what it has open, accept connections, take memory. It can
 * open nothing, connect to nobody, start nothing, and signal nobody else. The kernel refuses whatever else a
 * faulty parser might be made to try.
 */

/* Called before anything from the network is read. A process of root becomes the user heaptap-serve, or the
 * user `nobody` if there is no user heaptap-serve. 0, or -errno with one line in error. */
int web_drop_root(char *error, size_t error_bytes);

/* Filters the system calls of all threads, from now on. 0 or -errno. Does nothing if a sanitizer is
 * built in. */
int web_enter_sandbox(void);

/* ---- the loop: descriptors that the web process waits for, and what is called when one is ready */

struct loop_source {
	int fd; /* -1: not waited for */
	void (*ready)(struct loop_source *source, uint32_t events);
};

/* events: as for epoll_ctl(2). A source that was removed is not called. 0 or -errno. */
int web_loop_add(int epoll_fd, struct loop_source *source, int fd, uint32_t events);
void web_loop_remove(int epoll_fd, struct loop_source *source);

/*
 * ---- web_connection.c: connections of clients
 *
 * libmicrohttpd reads and writes them. We say what it must not accept, and how long a connection may take.
 *
 * A connection is for one request. Bytes after the request are never read as another request. libmicrohttpd
 * is lenient: a proxy in front of us may think that the request ends earlier or later.
 *
 * A client has READ_MS to send a whole request. Then the connection is closed, even if the client goes on
 * writing slowly. The client must read an answer at SEND_BYTES_PER_S or faster. If there are too many
 * connections, one is closed for each new one (client.h).
 */
enum {
	CONNECTION_READ_MS = 30000,
	CONNECTION_SEND_MS = 60000,
	CONNECTION_SEND_BYTES_PER_S = 32 << 10,
	CONNECTION_HEADER_BYTES = 24 << 10, /* of a request, all in all */
	CONNECTIONS_MAX = 512,              /* at one address that we listen on */
	CONNECTION_OTHER_FDS = 128,         /* descriptors for all other things */
};

/* At most so many bytes of answers are being sent at a time. An answer that several holders share (blob.h)
 * does not count. A single answer may be larger. */
#define CONNECTION_SENDING_BYTES ((size_t)128 << 20)

struct web;

/* One address that we listen on. */
struct connection_listener {
	struct web *web;
	struct listen_address address;
	struct MHD_Daemon *daemon; /* NULL: not started */
	struct loop_source source, incoming;
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
int web_connection_listen(struct web *web, struct connection_listener *listener, int fd, size_t files);

/* Does what is due at that address. Returns after how many ms, at most, to call again. */
int web_connection_run(struct connection_listener *listener);

/* Cuts off clients that are too slow, and wakes requests when their seconds are over. Returns after how many
 * ms, at most, to call again. */
int web_connection_tend(struct web *web, uint64_t now_ns);

#endif
