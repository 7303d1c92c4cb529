/* SPDX-License-Identifier: Apache-2.0 */
/* What samplers have said, each a list, and when. */
#ifndef SERVE_CATALOG_LISTS_H
#define SERVE_CATALOG_LISTS_H

#include "sampler/control/control_list.h"
#include "serve/broker_message.h"

#include <stdbool.h>

enum {
	CATALOG_LISTS_MAX = 256,
	CATALOG_LISTS_LATE_MS = 30000, /* a list is what it was for so long, if its sampler is late */
};

struct catalog_lists {
	struct catalog_lists_item {
		struct control_list *list;
		uint64_t server;
		uint64_t said_ns;  /* monotonic: of the look that got it */
		uid_t user;        /* who says it */
		bool foreign;      /* and may speak of his own processes alone */
		uint32_t left_out; /* rows of it that the broker has left out: of others, or too many */
	} items[CATALOG_LISTS_MAX];
	size_t count;
};

/* Reads one and closes fd; nothing, if it cannot be read. */
void catalog_lists_take(
    struct catalog_lists *lists, const struct broker_reply *reply, int fd, uint64_t now_ns);

/* Takes those of `last` of this server, or with 0 of all, as they are; but not the old ones. */
void catalog_lists_keep(
    struct catalog_lists *lists, const struct catalog_lists *last, uint64_t server, uint64_t now_ns);

/* Where both say something of a process, who may speak of any is right; then who has come first. The others'
 * rows are profiled no more. 0 or -ENOMEM. */
int catalog_lists_settle(struct catalog_lists *lists);

/* `next` takes the place of what there was, and is empty after that. */
void catalog_lists_renew(struct catalog_lists *lists, struct catalog_lists *next);

#endif
