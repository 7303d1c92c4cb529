/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker: the process that a user starts, with the user's rights. It opens control sockets and profile
 * files for the web process (broker_message.h), and hands over descriptors without reading what they hold.
 */
#ifndef SERVE_BROKER_H
#define SERVE_BROKER_H

#include "serve/command_line.h"

/* Serves until the web process ends, or until a signal or the front's end stops us. Closes web_fd, our end of
 * the socket pair. SIGCHLD is blocked from then on. */
void broker_run(const struct command_line *line, int web_fd);

#endif
