/* SPDX-License-Identifier: Apache-2.0 */
/* What clients of the control socket ask of a session: its list, snapshots, profiles as shared memory. */
#ifndef SAMPLER_SESSION_SERVING_H
#define SAMPLER_SESSION_SERVING_H

#include "sampler/session/control.h"
#include "sampler/session/cpu_profile.h"
#include "sampler/session/heap_capture.h"

struct serving {
	/* borrowed, set by the session before serving_open() */
	struct scheduler *scheduler;
	struct heap_capture *heap;     /* NULL: events only */
	struct event_registry *events; /* NULL: none */
	pid_t front;                   /* 0: none */

	struct control *control; /* NULL: there is no socket */
	struct cpu_profiles cpu;
	int64_t since_unix_ns;
	char working_folder[PATH_MAX]; /* to make relative paths of profiles absolute */
};

/* Opens the socket. 0 or -errno; serving_close() is fine in both cases, and without a serving_open(). */
int serving_open(struct serving *serving, int epoll_fd);
void serving_close(struct serving *serving);

/* If the descriptor is one of ours, handles what has arrived and returns true. */
bool serving_event(struct serving *serving, int fd);

/* Does what is due. Returns after how many ns to look again at the latest. */
uint64_t serving_tend(struct serving *serving, uint64_t now_ns);

/* A child of the sampler has ended. True: it was one of ours. */
bool serving_reap(struct serving *serving, pid_t child, int status);

/* Whoever requests snapshots means the processes that there are now, not at our last look. */
void serving_find_processes(const struct serving *serving);

/* A snapshot that `asker` waits for is on disk, or could not be made (-errno); for the scheduler. */
void serving_answer(void *context, uint64_t asker, pid_t pid, const char *path, int error);

/* The same of one as shared memory: the callee's descriptor, or -errno. */
void serving_give(void *context, uint64_t asker, pid_t pid, int fd);

#endif
