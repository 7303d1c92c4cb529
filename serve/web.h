/* SPDX-License-Identifier: Apache-2.0 */
/* The web process: reads everything that comes from a network, in a sandbox. */
#ifndef SERVE_WEB_H
#define SERVE_WEB_H

#include "serve/client.h"
#include "serve/command_line.h"
#include "serve/listen_address.h"

struct web_setup {
	const struct command_line *line;
	const struct listen_address *addresses; /* of the sockets that listen */
	const int *fds;                         /* sockets that listen; the callee's to close */
	size_t count;
	const struct token *token;
	int broker_fd; /* the callee's to close */
};

/* Serves until the broker ends. Returns the exit status. */
int web_run(const struct web_setup *setup);

#endif
