/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of a control socket, for a main loop with an epoll set: accepts clients that may ask,
 * reads their requests, and sends answers without ever waiting. A client that does not read its answers, or
 * says something else, is disconnected. No client can hold more than CONTROL_SERVER_QUEUE_BYTES of memory
 * here.
 *
 * Who may ask: root, our own user, and members of `group` (SO_PEERCRED, SO_PEERGROUPS).
 */
#ifndef SAMPLER_CONTROL_CONTROL_SERVER_H
#define SAMPLER_CONTROL_CONTROL_SERVER_H

#include "sampler/control/control_list.h"
#include "sampler/control/control_peer.h"
#include "sampler/control/control_request.h"

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

	/* Writes the daemon and its processes. NULL: "list" is unsupported. */
	void (*list)(void *context, struct control_list_writer *writer);

	/*
	 * Everything else: returns for how many processes control_server_written,
	 * _profiled or _failed will be called with `asker` (never from within this call); 0: there is no
	 * such process. -EOPNOTSUPP: not here. -ECANCELED: everything is off. Other -errno: not now.
	 */
	int64_t (*ask)(void *context, const struct control_request *request, uint64_t asker);

	/* That asker has hung up, with answers outstanding. May be NULL. */
	void (*gone)(void *context, uint64_t asker);
};

/*
 * Takes over listen_fd, a bound and listening SOCK_SEQPACKET socket, non-blocking: also in an error. Adds
 * it to the set. NULL: *error is -errno. The socket's file is the caller's.
 */
struct control_server *control_server_new(
    int epoll_fd, int listen_fd, gid_t group, const struct control_handlers *handlers, int *error);
void control_server_free(struct control_server *server); /* NULL is fine */

/* If the descriptor is one of the server's, handles what has arrived and returns true. */
bool control_server_event(struct control_server *server, int fd);

/* One of the profiles that `asker` waits for is complete, or could not be made (-errno; -ESRCH: its process
 * has ended). All do nothing if the asker has gone; profile_fd is closed in any case. */
void control_server_written(struct control_server *server, uint64_t asker, pid_t pid, const char *path);
void control_server_profiled(struct control_server *server, uint64_t asker, pid_t pid, int profile_fd);
void control_server_failed(struct control_server *server, uint64_t asker, pid_t pid, int error);

/* Is that asker still waiting? If not, nothing need be made for it. */
bool control_server_waits(const struct control_server *server, uint64_t asker);

/* Bytes as a sealed memfd, close-on-exec, for control_server_profiled. Returns a descriptor or -errno. */
int control_server_memory(const void *bytes, size_t length);

#endif
