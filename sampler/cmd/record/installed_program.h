/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the programs that are installed beside heaptap: heaptap-push (folder push/), the only process of
 * heaptap that sends profiles by HTTP, and heaptap-serve (folder serve/). Browsers and scrapers speak only
 * to the latter: no other process of heaptap reads what they send.
 */
#ifndef SAMPLER_CMD_RECORD_INSTALLED_PROGRAM_H
#define SAMPLER_CMD_RECORD_INSTALLED_PROGRAM_H

#include <sys/types.h>

struct options;

/* heaptap-push beside a session: `record --push`. */
struct pusher {
	int fd;       /* our end of a socket to it; -1: it does not run */
	int paths_fd; /* the sampler's end of the pipe for paths of profiles; -1: closed */
	pid_t pid;
};

/* Starts the program. 0, or -errno after a line. */
int pusher_start(struct pusher *pusher, const struct options *options);

/* Closes paths_fd in a process that sends no paths: the sampler has its own descriptor. */
void pusher_close_paths(struct pusher *pusher);

/* Tells the pusher that the session is over. It sends for ten seconds more at most; then fd becomes
 * readable. */
void pusher_end(struct pusher *pusher);

/* Closes fd. Call it when fd is readable, or when the wait is over. Logs if the pusher has ended too
 * early. */
void pusher_finish(struct pusher *pusher);

/* `heaptap push`: executes heaptap-push in place of this program. Returns the exit status if that fails. */
int pusher_run(struct options *options);

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
