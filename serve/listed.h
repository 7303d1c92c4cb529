/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be handed on of the lists of a control socket: all of root's and of our own user's; of anybody
 * else's the rows of processes that are his own, a bounded number, and nothing that he says of himself.
 */
#ifndef SERVE_LISTED_H
#define SERVE_LISTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	/* Of all sockets of another user together, in one look: each row costs a look into /proc. */
	LISTED_ROWS_OF_USER = 1024,
	LISTED_BYTES_OF_USER = 4 << 20,
};

struct listed {
	uid_t user;  /* who speaks */
	pid_t *pids; /* of the rows that were handed on; owned */
	size_t count, capacity;
	/* Where its profiles are, if root or our own user says so; owned, NULL: nowhere. */
	char *store;
	unsigned int store_depth;
	int64_t store_since_ns;
};

/*
 * Takes over fd, a sealed list of *bytes by listed->user, who has so many sockets. Returns a descriptor of
 * what is handed on, of *bytes, or -errno. *left_out: how many rows are not his, or one if there are
 * too many.
 */
int listed_take(struct listed *listed, int fd, uint64_t *bytes, size_t sockets, uint32_t *left_out);

/* The command line of a process that was handed on and is still the user's, as sealed memory of *bytes; or
 * -errno. */
int listed_command_line(const struct listed *listed, pid_t pid, uint64_t *bytes);

void listed_fini(struct listed *listed);

#endif
