/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attacher: a child process that attaches to one process, or detaches from it. The search for a safe
 * point may last for a minute. Meanwhile the session goes on, also with other processes, and can give up the
 * search. When the attacher ends, the kernel lets go of every thread that the attacher had stopped.
 */
#ifndef SAMPLER_INJECT_ATTACHER_H
#define SAMPLER_INJECT_ATTACHER_H

#include "sampler/inject/attachment.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { ATTACHER_CPU_S = 40 }; /* the kernel kills an attacher that takes more processor time */

struct attacher {
	pid_t child;
	int fd;                      /* readable when the attacher is done; -1: there is no attacher */
	uint64_t given_up_ns;        /* 0: it was not */
	const struct region *region; /* of the wish */
};

/* `run`: attachment_begin or attachment_end; wish->cancel_fd is not used. Returns 0 or -errno. If this
 * process dies while the attacher attaches, the attacher detaches again. */
int attacher_start(struct attacher *attacher,
    int (*run)(struct attachment *attachment, const struct attachment_wish *wish),
    const struct attachment_wish *wish);

/* Gives up the search if it still goes on. The result then comes at once, unless the target holds up the
 * attacher. */
void attacher_give_up(struct attacher *attacher);

/* True if the attacher was given up so long ago that attacher_finish returns soon. */
bool attacher_is_late(const struct attacher *attacher);

/* Waits for the result of `run`, and returns it. Waits at most 10 s after attacher_give_up, and then kills
 * the attacher: it may wait for files or memory of the target that never answer. */
int attacher_finish(struct attacher *attacher, struct attachment *attachment);

#endif
