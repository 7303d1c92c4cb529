/* SPDX-License-Identifier: Apache-2.0 */
/* The web process: reads everything that comes from a network, in a sandbox. */
#ifndef SERVE_WEB_H
#define SERVE_WEB_H

#include "serve/client.h"
#include "serve/command_line.h"
#include "serve/listen_address.h"

#include <stddef.h>

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

/*
 * ---- its sandbox
 *
 * What the web process may still do: read and write what it has open, accept connections, take memory. It can
 * open nothing, connect to nobody, start nothing, and signal nobody else. The kernel refuses whatever else a
 * faulty parser might be made to try.
 */

/* Called before anything from the network is read. If we are root, becomes the user heaptap-serve, or nobody.
 * 0, or -errno with one line in error. */
int web_drop_root(char *error, size_t error_bytes);

/* Filters the system calls of all threads, from now on. 0 or -errno. Does nothing if a sanitizer is
 * built in. */
int web_enter_sandbox(void);

#endif
