/* SPDX-License-Identifier: Apache-2.0 */
/* The program heaptap-serve (folder serve/), which browsers and scrapers speak to: no other process of
 * heaptap reads what they send. */
#ifndef SAMPLER_SESSION_WEB_SERVER_H
#define SAMPLER_SESSION_WEB_SERVER_H

#include <sys/types.h>

struct options;

/* `record --listen`: starts it for the session of that sampler alone, and waits until it listens. It ends
 * when *fd, our end of a socket to it, is closed. 0, or -errno after a line. */
int web_server_start(const struct options *options, pid_t sampler, int *fd);

/* `heaptap serve`: becomes heaptap-serve. Returns only if that fails, with the exit status. */
int web_server_run(struct options *options);

#endif
