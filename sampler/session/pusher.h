/* SPDX-License-Identifier: Apache-2.0 */
/* The program heaptap-push (folder push/), which speaks HTTP: no other process of heaptap does. */
#ifndef SAMPLER_SESSION_PUSHER_H
#define SAMPLER_SESSION_PUSHER_H

struct options;

/* heaptap-push beside a session: `record --push`. */
struct pusher {
	int fd;       /* our end; -1: there is none */
	int paths_fd; /* the sampler's end of the pipe for names of profiles; -1: closed */
};

/* Starts it, in a session of its own. 0, or -errno after a message. */
int pusher_start(struct pusher *pusher, const struct options *options);

/* No name comes from this process; the sampler has its own descriptor. */
void pusher_close_paths(struct pusher *pusher);

/* The session is over, and what is left may be sent for ten seconds. Then fd becomes readable. */
void pusher_end(struct pusher *pusher);

/* Call when fd is readable, or when nothing is waited for any more. */
void pusher_finish(struct pusher *pusher);

/* `heaptap push`: becomes heaptap-push. Returns only if that fails, with the exit status. */
int pusher_run(struct options *options);

#endif
