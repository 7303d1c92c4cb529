/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control sockets of all samplers on this machine (the daemon's, and those of sessions), and what the
 * broker hands on of their lists.
 *
 * Lists of root's and of our own user's samplers are handed on whole. Of another user's lists the broker
 * hands on a bounded number of rows, about processes of that user, and nothing that the sampler says of
 * itself.
 */
#ifndef SERVE_CONTROL_SOCKETS_H
#define SERVE_CONTROL_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CONTROL_SOCKETS_MAX = 256,
	/* Of all other users together, so that there is room for root's and for ours. */
	CONTROL_SOCKETS_OF_OTHERS = CONTROL_SOCKETS_MAX / 2,
	CONTROL_SOCKETS_OF_USER = 32,  /* of one other user */
	CONTROL_SOCKETS_NAMES = 10000, /* that are read in the folder of another user */
	/* In one look, of all sockets of another user together: each row costs a look into /proc. */
	CONTROL_SOCKETS_ROWS_OF_USER = 1024,
	CONTROL_SOCKETS_BYTES_OF_USER = 4 << 20,
};

/* What the last list of a socket was about. */
struct listed {
	uid_t user;  /* serves the socket */
	pid_t *pids; /* of the rows that were handed on; owned */
	size_t count, capacity;
	/* The folder of its profiles, if root or our own user says so. Owned; NULL: nowhere. */
	char *store;
	unsigned int store_depth;
	int64_t store_since_ns;
};

struct control_sockets {
	const char *daemon_path; /* as given by --socket; NULL: its usual place */
	bool with_daemon, with_sessions;
	pid_t only; /* the only sampler that is looked for; 0: all are */
	struct control_sockets_item {
		uint64_t number;  /* never used again */
		char folder[128]; /* of a session; "": the socket is the daemon's */
		char name[32];
		uid_t owner; /* of the folder */
		struct listed listed;
		bool seen;
	} items[CONTROL_SOCKETS_MAX];
	size_t count;
	uint64_t next_number;
};

/* Looks which sockets there are now. */
void control_sockets_look(struct control_sockets *sockets);

/* NULL: there is no such socket any more. Valid until the next look. */
struct control_sockets_item *control_sockets_find(struct control_sockets *sockets, uint64_t number);

/* Returns a connection that does not wait, or -errno. Notes the user at its other end. */
int control_sockets_connect(const struct control_sockets *sockets, struct control_sockets_item *item);

/*
 * Takes over fd, a sealed list of *bytes that came from this socket. Returns a descriptor of what is handed
 * on, of *bytes, or -errno. *left_out is the number of rows about processes of other users, which are left
 * out. It is one more if further rows are left out because there are too many.
 */
int control_sockets_take_list(const struct control_sockets *all, struct control_sockets_item *item, int fd,
    uint64_t *bytes, uint32_t *left_out);

/* The command line of a process that was handed on and is still the user's, as sealed memory of *bytes; or
 * -errno. */
int control_sockets_command_line(const struct control_sockets_item *item, pid_t pid, uint64_t *bytes);

#endif
