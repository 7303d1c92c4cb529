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
	int folder_fd; /* the folder of the socket's file, even if the folder is renamed; -1: not opened */
};

/* Pure. 0, or -EINVAL with one line in error. Names other than localhost are not looked up. */
int listen_address_parse(struct listen_address *address, const char *text, char *error, size_t error_bytes);

/* The address of a socket that is bound already. 0 or -errno. */
int listen_address_of(struct listen_address *address, int fd);

/* Sockets that systemd has bound for this process (sd_listen_fds(3): $LISTEN_PID, $LISTEN_FDS). Returns how
 * many there are, at most `room`. They are close-on-exec and non-blocking. */
size_t listen_address_activated(int *fds, struct listen_address *addresses, size_t room);

/* "127.0.0.1:7337", "unix:/path" */
void listen_address_text(const struct listen_address *address, char text[LISTEN_ADDRESS_BYTES]);

/*
 * Binds and listens. A unix socket of ours that nobody serves any more is replaced; a new one has mode 0660.
 * For port 0, *address gets the port that was chosen. Returns a descriptor, close-on-exec and non-blocking,
 * or -errno.
 */
int listen_address_open(struct listen_address *address);

/* Removes the file of a unix socket that was opened. */
void listen_address_remove(const struct listen_address *address);

#endif
