/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program heaptap-serve (folder serve/). Browsers and scrapers speak only to it: no other
 * process of heaptap reads what they send. */
#ifndef SAMPLER_CMD_RECORD_WEB_SERVER_H
#define SAMPLER_CMD_RECORD_WEB_SERVER_H

#include <sys/types.h>

struct options;

/* `record --listen`: starts the program for the session of this sampler alone, and waits until it listens.
 * *fd: our end of a socket to the program, which ends when that is closed. 0, or -errno after a line. */
int web_server_start(const struct options *options, pid_t sampler, int *fd);

/* `heaptap serve`: executes heaptap-serve in place of this program. Returns the exit status if that fails. */
int web_server_run(struct options *options);

#endif
