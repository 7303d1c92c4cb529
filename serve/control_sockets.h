/* SPDX-License-Identifier: Apache-2.0 */
/* The control sockets of whoever samples processes here: the daemon's, and those of sessions. */
#ifndef SERVE_CONTROL_SOCKETS_H
#define SERVE_CONTROL_SOCKETS_H

#include "serve/listed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CONTROL_SOCKETS_MAX = 256,
	/* Those of users who are neither root nor us, so that there is room for ours and for the daemon's. */
	CONTROL_SOCKETS_OF_OTHERS = CONTROL_SOCKETS_MAX / 2,
	CONTROL_SOCKETS_OF_USER = 32,  /* of one of them */
	CONTROL_SOCKETS_NAMES = 10000, /* in his folder that are read */
};

struct control_sockets {
	const char *daemon_path; /* as given by --socket; NULL: where it usually is */
	bool with_daemon, with_sessions;
	pid_t only; /* the sampler of one session, no other; 0: all */
	struct control_sockets_item {
		uint64_t number;  /* never used again */
		char folder[128]; /* of a session; "": the daemon's */
		char name[32];
		uid_t owner;          /* of the folder */
		struct listed listed; /* what its last list was about */
		bool seen;
	} items[CONTROL_SOCKETS_MAX];
	size_t count;
	uint64_t next_number;
};

/* Looks which there are now. */
void control_sockets_look(struct control_sockets *sockets);

/* NULL: there is no such socket any more. Valid until the next look. */
struct control_sockets_item *control_sockets_find(struct control_sockets *sockets, uint64_t number);

/* How many the user has who serves that one. */
size_t control_sockets_count(const struct control_sockets *sockets, const struct control_sockets_item *item);

/* A connection that does not wait, or -errno. Notes who serves it. */
int control_sockets_connect(const struct control_sockets *sockets, struct control_sockets_item *item);

#endif
