/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of all samplers, and when each was received. */
#ifndef SERVE_CATALOG_LISTS_H
#define SERVE_CATALOG_LISTS_H

#include "sampler/core/control_list.h"
#include "serve/broker_message.h"

#include <stdbool.h>

enum {
	CATALOG_LISTS_MAX = 256,
	CATALOG_LISTS_LATE_MS = 30000, /* how long a list stays valid if its sampler does not answer */
};

struct catalog_lists {
	struct catalog_lists_item {
		struct control_list *list;
		uint64_t server;
		uint64_t said_ns;  /* monotonic: the time of the look that got the list */
		uid_t user;        /* the sampler's user */
		bool foreign;      /* the user may list only processes of his own */
		uint32_t left_out; /* rows that the broker left out: of other users' processes, or too many */
	} items[CATALOG_LISTS_MAX];
	size_t count;
};

/* Reads a list and closes fd. A list that cannot be read is left out. */
void catalog_lists_take(
    struct catalog_lists *lists, const struct broker_reply *reply, int fd, uint64_t now_ns);

/* Takes over lists of `last` that are still valid: those of this server, or of all with 0. */
void catalog_lists_keep(
    struct catalog_lists *lists, const struct catalog_lists *last, uint64_t server, uint64_t now_ns);

/* Several lists may have a row of one process. The list of a user who may list any process wins, then the
 * list of the sampler that came first. The other rows become not profiled. 0 or -ENOMEM. */
int catalog_lists_settle(struct catalog_lists *lists);

/* Replaces the lists by `next`, which is empty after that. */
void catalog_lists_renew(struct catalog_lists *lists, struct catalog_lists *next);

#endif
