/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attacher: a child process that attaches to or detaches from one process. The search for a safe point
 * may last for a minute; meanwhile the session goes on, with other processes too, and can give the search up.
 * When the attacher ends, the kernel lets go of every thread that it had stopped.
 */
#ifndef SAMPLER_ATTACH_ATTACHER_H
#define SAMPLER_ATTACH_ATTACHER_H

#include "sampler/attach/attachment.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attacher {
	pid_t child;
	int fd;                      /* readable when it is done. -1: none */
	uint64_t given_up_ns;        /* 0: it was not */
	const struct region *region; /* of the wish */
};

/* `run`: attachment_begin or attachment_end; wish->cancel_fd is not used. Returns 0 or -errno. If this
 * process dies while the attacher attaches, that detaches again. */
int attacher_start(struct attacher *attacher,
    int (*run)(struct attachment *attachment, const struct attachment_wish *wish),
    const struct attachment_wish *wish);

/* Gives up the search, if that still goes on; the result comes at once, unless the target holds it up. */
void attacher_give_up(struct attacher *attacher);

/* It was given up, and nobody waits for it any longer: attacher_finish returns soon. */
bool attacher_is_late(const struct attacher *attacher);

/* Waits for the result, and returns what `run` did. Of one that was given up, 10 s from then at most: it may
 * wait for files or memory of the target that never answer. Then it is killed. */
int attacher_finish(struct attacher *attacher, struct attachment *attachment);

#endif
