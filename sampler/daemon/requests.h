/* SPDX-License-Identifier: Apache-2.0 */
/* What clients of the daemon's control socket ask for, and what they are answered. */
#ifndef SAMPLER_DAEMON_REQUESTS_H
#define SAMPLER_DAEMON_REQUESTS_H

#include <stdint.h>
#include <sys/types.h>

struct daemon;

/* Opens the socket, and looks for the file `off` beside it. 0, or -errno after a line. */
int requests_open(struct daemon *daemon);
void requests_close(struct daemon *daemon); /* if it was opened */

/* Requests a snapshot of every process; asker 0: nobody waits. Returns how many follow. */
uint32_t requests_want_all(struct daemon *daemon, const char *cause, uint64_t asker);

/* For struct scheduler_setup: a snapshot that somebody waits for is in the store, or could not be made. */
void requests_answer(void *daemon, uint64_t asker, pid_t pid, const char *path, int error);

#endif
