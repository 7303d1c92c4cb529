/* SPDX-License-Identifier: Apache-2.0 */
/* An address to listen on: "127.0.0.1:7337", "[::1]:7337", "localhost:0", ":7337" (all of them),
 * "unix:/path". */
#ifndef SERVE_LISTEN_ADDRESS_H
#define SERVE_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { LISTEN_ADDRESS_BYTES = 160 };

struct listen_address {
	struct sockaddr_storage socket;
	socklen_t length;
	bool is_unix;
	bool is_local; /* only this machine can reach it */
	int folder_fd; /* of the socket's file, whatever has the folder's name now; -1: not opened */
};

/* Pure. 0, or -EINVAL with one line in error. Names other than localhost are not looked up. */
int listen_address_parse(struct listen_address *address, const char *text, char *error, size_t error_bytes);

/* The same of a socket that was bound by somebody else. 0 or -errno. */
int listen_address_of(struct listen_address *address, int fd);

/* "127.0.0.1:7337", "unix:/path" */
void listen_address_text(const struct listen_address *address, char text[LISTEN_ADDRESS_BYTES]);

/*
 * Binds and listens. A unix socket of ours that nobody serves any more is replaced; a new one has mode 0660.
 * *address gets the port that was chosen for port 0. Returns a descriptor, close-on-exec and non-blocking,
 * or -errno.
 */
int listen_address_open(struct listen_address *address);

/* Removes the file of a unix socket that was opened. */
void listen_address_remove(const struct listen_address *address);

#endif
