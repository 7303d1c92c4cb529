/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's control socket, and the file `off` beside it. */
#ifndef SAMPLER_DAEMON_DAEMON_SOCKET_H
#define SAMPLER_DAEMON_DAEMON_SOCKET_H

struct daemon;

/* Opens the socket, and looks for the file `off` beside it. 0, or -errno after a line. */
int daemon_socket_open(struct daemon *daemon);

/* Also without a daemon_socket_open(). */
void daemon_socket_close(struct daemon *daemon);

#endif
