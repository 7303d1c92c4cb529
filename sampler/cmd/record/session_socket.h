/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a session, through which `heaptap snapshot` and `heaptap serve` reach its sampler:
 * <folder>/<pid of the sampler>.sock, in the first folder of control_folder.h that is ours. The protocol is
 * that of sampler/core/control_request.h.
 *
 * The client must be the sampler's user or root, and the server must be the folder's owner: both sides check
 * SO_PEERCRED for every connection.
 */
#ifndef SAMPLER_CMD_RECORD_SESSION_SOCKET_H
#define SAMPLER_CMD_RECORD_SESSION_SOCKET_H

#include "sampler/core/control_folder.h"

struct session_socket {
	char folder[CONTROL_FOLDER_BYTES];
	int folder_fd; /* -1: no folder is open */
	char name[32]; /* of the socket in the folder; "" if it is not bound */
};

/* Returns the listening descriptor, or -errno. */
int session_socket_open(struct session_socket *socket);

/* Removes the socket. Also without a session_socket_open(), if folder_fd is -1. */
void session_socket_close(struct session_socket *socket);

#endif
