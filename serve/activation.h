/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that systemd has bound for us (sd_listen_fds(3): $LISTEN_PID, $LISTEN_FDS). */
#ifndef SERVE_ACTIVATION_H
#define SERVE_ACTIVATION_H

#include "serve/listen_address.h"

/* Returns how many there are for this process, at most `room`, close-on-exec and non-blocking. */
size_t activation_sockets(int *fds, struct listen_address *addresses, size_t room);

#endif
