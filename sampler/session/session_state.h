/* SPDX-License-Identifier: Apache-2.0 */
/* A running session, for those who begin one: with a COMMAND (session.c), or with processes that run already
 * (session_attach.c). */
#ifndef SAMPLER_SESSION_SESSION_STATE_H
#define SAMPLER_SESSION_SESSION_STATE_H

#include "sampler/cli/options.h"
#include "sampler/session/attachments.h"
#include "sampler/session/heap_capture.h"
#include "sampler/session/progress.h"
#include "sampler/session/serving.h"
#include "sampler/session/signals.h"
#include "sampler/snapshot/event_source.h"
#include "sampler/snapshot/scheduler.h"
#include "sampler/snapshot/sink.h"
#include "sampler/target/launch.h"

struct session {
	const struct options *options;
	struct snapshot_settings settings;
	struct output output;
	struct sink_files files;
	struct sink_announced announced; /* with --push */
	struct modules *modules;
	struct memory_bound memory;
	struct scheduler *scheduler;
	struct serving serving;
	struct launch launch;
	struct heap_capture *heap;     /* NULL: events only */
	struct event_registry *events; /* NULL: none requested, or not available: */
	int events_error;
	struct event_source event_source;
	enum signals_role role;
	pid_t front; /* 0: none */
	int front_fd, epoll_fd, signal_fd;
	int command_fd;  /* COMMAND's pidfd, needed if the front has died; -1: none */
	bool summarized; /* the front is to be told that all is done; done_sent: and it was, or cannot be */
	bool done_sent, stopping;
	struct progress progress;
	uint32_t terminations;           /* SIGTERMs of a session with a front */
	uint64_t end_ns;                 /* when it stops by itself; 0: not */
	struct attachments *attachments; /* of running processes; NULL: none */
	bool attachments_stopped;
};

/* Not open yet. */
struct session session_of(const struct options *options, enum signals_role role, int front_fd);

/* There is no front that reports the end of COMMAND, but a running process (0: none). */
void session_without_command(struct session *session, pid_t pid);

/* Returns 0 or -errno; session_close in both cases. */
int session_open(struct session *session);
void session_close(struct session *session);

/* Runs until there is nothing left to do. Returns the exit status. */
int session_loop(struct session *session);

#endif
