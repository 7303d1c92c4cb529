/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children of the processes of `record --pid`, such as the workers that a master has forked. They are
 * recorded too. But a child in another control group belongs to another service: a session manager or a
 * container's starter has started it. It is not recorded unless --pid names it.
 */
#ifndef SAMPLER_CMD_RECORD_CHILDREN_H
#define SAMPLER_CMD_RECORD_CHILDREN_H

#include "sampler/cmd/cli/options.h"
#include "sampler/linux/descendants.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CHILDREN_LOOKED_AT_MAX = 1024 }; /* more children are left out */

struct children {
	const pid_t *roots; /* borrowed */
	size_t root_count;  /* at most OPTION_PIDS_MAX */
	pid_t seen[CHILDREN_LOOKED_AT_MAX];
	size_t seen_count;
	struct children_of {
		size_t all, taken, elsewhere; /* elsewhere: in other control groups, not in `all` */
		bool refused;                 /* the process itself is not recorded */
	} of[OPTION_PIDS_MAX];
	size_t left_out; /* because there are too many */
};

/* Finds at most `room` children that were not seen before and have to be recorded, and returns their
 * number. is_followed tells which children are recorded already, since they were forked after their parent
 * was attached to; they count as taken. NULL: none is. */
size_t children_look(struct children *children, struct descendant found[OPTION_PIDS_MAX], size_t room,
    bool (*is_followed)(void *context, pid_t pid), void *context);

/* A child that was found is recorded; or it has ended, and does not count any more. */
void children_took(struct children *children, const struct descendant *child);
void children_ended(struct children *children, const struct descendant *child);

/* Logs "attached to nginx (pid 8915) and its 2 children" for each process that has children. */
void children_say(const struct children *children);

#endif
