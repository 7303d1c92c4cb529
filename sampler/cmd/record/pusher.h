/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the program heaptap-push (folder push/), the only process of heaptap that sends profiles by HTTP. */
#ifndef SAMPLER_CMD_RECORD_PUSHER_H
#define SAMPLER_CMD_RECORD_PUSHER_H

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

#endif
