/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that `record --pid` attaches to, and their children: each in a child process of its own
 * (attacher.h), so that one whose threads never come to a safe point holds up neither the others nor the
 * user; and the end of it all.
 */
#ifndef SAMPLER_SESSION_ATTACHMENTS_H
#define SAMPLER_SESSION_ATTACHMENTS_H

#include "sampler/attach/attachment.h"
#include "sampler/core/heap_capture.h"
#include "sampler/heap/arrivals.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct attachments;

/* Borrowed, until attachments_free; the first two functions need an open session. */
struct attachments_setup {
	const struct options *options;
	struct heap_capture *heap;
	struct modules *modules;
	const struct delivery *delivery;
	int epoll_fd, signal_fd;
};

/* NULL: out of memory. */
struct attachments *attachments_new(const struct attachments_setup *setup);
void attachments_free(struct attachments *attachments);

/* Begins to attach to the processes of the options, and to their children unless the options say no. What
 * comes of it, also if one is refused now, is said to the user. */
void attachments_begin(struct attachments *attachments);

/* An event of the epoll set. True: it was for this. All functions from here on accept NULL: a session of
 * COMMAND. */
bool attachments_event(struct attachments *attachments, int fd);

/* True: nothing is on its way. */
bool attachments_settled(const struct attachments *attachments);

/* Gives up what is on its way, detaches from all, and closes their books. Lasts until each has a thread at a
 * safe point, or another signal to stop arrives. */
void attachments_stop(struct attachments *attachments);

/* Processes of the options that could not be attached to. A child is none of them. */
size_t attachments_failed(const struct attachments *attachments);

/* "pid 4020 (redis-server): detached; paused one thread for 0.5 ms" */
void attachments_say(const char *what, pid_t pid, const struct attachment *attachment);

#endif
