/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children of the processes of `record --pid`, which are recorded too: the workers that a master has
 * forked before. A child in another control group than its process is no part of the same service, and is
 * left to a --pid of its own: what a session manager or a container's starter has started.
 */
#ifndef SAMPLER_SESSION_CHILDREN_H
#define SAMPLER_SESSION_CHILDREN_H

#include "sampler/cli/options.h"
#include "sampler/linux/descendants.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CHILDREN_LOOKED_AT_MAX = 1024 }; /* more are not looked at */

struct children {
	const pid_t *roots; /* borrowed */
	size_t root_count;  /* at most OPTION_PIDS_MAX */
	pid_t seen[CHILDREN_LOOKED_AT_MAX];
	size_t seen_count;
	struct children_of {
		size_t all, taken, elsewhere; /* elsewhere: in other control groups, not in `all` */
		bool refused;                 /* the process itself is not recorded */
	} of[OPTION_PIDS_MAX];
	size_t left_out; /* for want of room */
};

/* Those that were not seen before, to be taken: at most `room`. `is_followed` (NULL: nobody is) tells those
 * that are recorded already, as a child that was forked since is; they count as taken. Returns their
 * number. */
size_t children_look(struct children *children, struct descendant found[OPTION_PIDS_MAX], size_t room,
    bool (*is_followed)(void *context, pid_t pid), void *context);

/* What has come of one that was found. ended: it had, and does not count. */
void children_took(struct children *children, const struct descendant *child);
void children_ended(struct children *children, const struct descendant *child);

/* "attached to nginx (pid 8915) and its 2 children", a line for each process that has some. */
void children_say(const struct children *children);

#endif
