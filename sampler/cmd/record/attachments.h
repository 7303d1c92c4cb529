/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that `record --pid` attaches to, and their children. Each has a job of its own
 * (sampler/core/attach_job.h). At the end of the session all are detached from.
 */
#ifndef SAMPLER_CMD_RECORD_ATTACHMENTS_H
#define SAMPLER_CMD_RECORD_ATTACHMENTS_H

#include "sampler/books/arrivals.h"
#include "sampler/core/heap_capture.h"
#include "sampler/inject/attachment.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct attachments;

/* Borrowed until attachments_free(). The session must be open. */
struct attachments_setup {
	const struct options *options;
	struct heap_capture *heap;
	struct modules *modules;
	const struct library_copy *library_copy;
	int epoll_fd, signal_fd;
	int socket_error; /* why there is no control socket, as -errno; 0: there is one */
};

/* NULL if there is no memory. */
struct attachments *attachments_new(const struct attachments_setup *setup);
void attachments_free(struct attachments *attachments);

/* Begins to attach to the processes of the options, and to their children unless the options say no. The
 * result of each is logged, now or later. */
void attachments_begin(struct attachments *attachments);

/* If the readable descriptor is that of a job, takes the result of the job and returns true. This function
 * and the next ones accept NULL: a session of COMMAND. */
bool attachments_event(struct attachments *attachments, int fd);

/* True if no job is under way. */
bool attachments_settled(const struct attachments *attachments);

/* Gives up the jobs that are under way, detaches from all processes, and closes their books. Lasts until
 * each process has a thread at a safe point, or until another signal to stop arrives. */
void attachments_stop(struct attachments *attachments);

/* The number of processes of the options that could not be attached to. Children do not count. */
size_t attachments_failed(const struct attachments *attachments);

/* Logs "pid 4020 (redis-server): detached; paused one thread for 0.5 ms". */
void attachments_say(const char *what, pid_t pid, const struct attachment *attachment);

#endif
