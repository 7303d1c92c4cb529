/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of a control socket, for a main loop with an epoll set. It accepts clients that may ask,
 * reads their requests, and sends answers without ever waiting. A client that does not read its answers, or
 * sends anything else, is disconnected. So no client takes more than CONTROL_SERVER_QUEUE_BYTES of our
 * memory.
 *
 * Clients that may ask are root, our own user, and members of `group` (SO_PEERCRED, SO_PEERGROUPS). A client
 * with an outstanding request is called an asker, and is known by a number that is never 0.
 */
#ifndef SAMPLER_CORE_CONTROL_SERVER_H
#define SAMPLER_CORE_CONTROL_SERVER_H

#include "sampler/core/control_list.h"
#include "sampler/core/control_peer.h"
#include "sampler/core/control_request.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CONTROL_SERVER_CLIENTS = 16,
	CONTROL_SERVER_QUEUE_BYTES = 1 << 20,
	CONTROL_SERVER_QUEUE_PROFILES = 8, /* beside those that the socket's buffer holds */
};

struct control_server;

struct control_handlers {
	void *context;

	/* Writes the list. NULL: "list" is unsupported. */
	void (*list)(void *context, struct control_list_writer *writer);

	/*
	 * Handles any other request. Returns for how many processes control_server_written(), _profiled() or
	 * _failed() will be called with `asker`, but never from within this call. 0: there is no such
	 * process. -ENODATA: no such process has taken a sample yet; -EOPNOTSUPP: unsupported; -ECANCELED:
	 * the daemon is switched off; other -errno: not now.
	 */
	int64_t (*ask)(void *context, const struct control_request *request, uint64_t asker);

	/* The asker has hung up before it got all answers. May be NULL. */
	void (*gone)(void *context, uint64_t asker);
};

/*
 * Serves listen_fd, a bound, listening and non-blocking SOCK_SEQPACKET socket, which is taken over, also in
 * an error. Adds it to the epoll set. NULL if that fails; then *error is -errno. The caller removes the
 * socket's file.
 */
struct control_server *control_server_new(
    int epoll_fd, int listen_fd, gid_t group, const struct control_handlers *handlers, int *error);
void control_server_free(struct control_server *server); /* NULL is fine */

/* If the descriptor is one of the server's, handles what has arrived and returns true. */
bool control_server_event(struct control_server *server, int fd);

/* A profile that `asker` waits for is complete, or could not be made (-errno; -ESRCH if the process has
 * ended). These functions do nothing if the asker has gone. profile_fd is closed in any case. */
void control_server_written(struct control_server *server, uint64_t asker, pid_t pid, const char *path);
void control_server_profiled(struct control_server *server, uint64_t asker, pid_t pid, int profile_fd);
void control_server_failed(struct control_server *server, uint64_t asker, pid_t pid, int error);

/* Does the asker still wait? */
bool control_server_waits(const struct control_server *server, uint64_t asker);

/* Makes a sealed memfd of the bytes, close-on-exec, for control_server_profiled(). Returns a descriptor or
 * -errno. */
int control_server_memory(const void *bytes, size_t length);

#endif
