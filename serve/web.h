/* SPDX-License-Identifier: Apache-2.0 */
/* The web process: everything that comes from a network is read here, in a sandbox. */
#ifndef SERVE_WEB_H
#define SERVE_WEB_H

#include "serve/client.h"
#include "serve/command_line.h"
#include "serve/listen_address.h"

struct web_setup {
	const struct command_line *line;
	const struct listen_address *addresses; /* of the sockets */
	const int *fds;                         /* listening; the callee's */
	size_t count;
	const struct token *token;
	int broker_fd; /* the callee's */
};

/* Serves until the broker ends. Returns the exit status. */
int web_run(const struct web_setup *setup);

#endif
