/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker: the process that a user starts, with the user's rights. It opens control sockets and profile
 * files for the web process (broker_message.h), and hands over descriptors without looking into them.
 */
#ifndef SERVE_BROKER_H
#define SERVE_BROKER_H

#include "serve/command_line.h"

#include <sys/types.h>

/* Serves until the web process ends, or a signal or the front's end stops us. web_fd: our end of the socket
 * pair; web: its pid. Returns the exit status. */
int broker_run(const struct command_line *line, int web_fd, pid_t web);

#endif
