/* SPDX-License-Identifier: Apache-2.0 */
/* The control sockets of whoever samples processes here: the daemon's, and those of sessions. */
#ifndef SERVE_CONTROL_SOCKETS_H
#define SERVE_CONTROL_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONTROL_SOCKETS_MAX = 256 };

struct control_sockets {
	const char *daemon_path; /* as given by --socket; NULL: where it usually is */
	bool with_daemon, with_sessions;
	pid_t only; /* the sampler of one session, no other; 0: all */
	struct control_sockets_item {
		uint64_t number;  /* never used again */
		char folder[128]; /* of a session; "": the daemon's */
		char name[32];
		uid_t owner;
		bool seen;
	} items[CONTROL_SOCKETS_MAX];
	size_t count;
	uint64_t next_number;
};

/* Looks which there are now. */
void control_sockets_look(struct control_sockets *sockets);

/* A connection that does not wait, or -errno. -ENOENT: there is no such socket any more. */
int control_sockets_connect(const struct control_sockets *sockets, uint64_t number);

#endif
