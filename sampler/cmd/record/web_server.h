/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program heaptap-serve (folder serve/). Browsers and scrapers speak only to it: no other
 * process of heaptap reads what they send. */
#ifndef SAMPLER_CMD_RECORD_WEB_SERVER_H
#define SAMPLER_CMD_RECORD_WEB_SERVER_H

#include <sys/types.h>

struct options;

/* heaptap-serve beside a session: `record --listen`. */
struct web_server {
	int fd; /* our end of a socket to it; -1: it does not run */
	pid_t pid;
};

/* Starts the program for the session of this sampler alone, and waits until it listens. 0, or -errno after a
 * line. */
int web_server_start(struct web_server *server, const struct options *options, pid_t sampler);

/* Closes fd: then the program ends. */
void web_server_end(struct web_server *server);

/* `heaptap serve`: executes heaptap-serve in place of this program. Returns the exit status if that fails. */
int web_server_run(struct options *options);

#endif
