/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything about events in one session: counters, intake, and when which profile is written.
 *
 * A process that is also profiled for its heap has its events written whenever its heap is, under the same
 * number (event_scheduler_take). For all others the same rules hold by themselves: interval, SIGUSR1 to the
 * sampler, `heaptap snapshot`, the end.
 */
#ifndef SAMPLER_SNAPSHOT_EVENT_SCHEDULER_H
#define SAMPLER_SNAPSHOT_EVENT_SCHEDULER_H

#include "sampler/perf/event.h"
#include "sampler/snapshot/output.h"
#include "sampler/snapshot/snapshot_settings.h"
#include "sampler/heap/process.h"
#include "sampler/heap/registry.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_scheduler;

/* three samples; what an unprivileged user is left beside the heap's rings */
enum { EVENT_RING_BYTES_LEAST = 128 << 10 };

struct event_scheduler_setup {
	const struct snapshot_settings *settings; /* these are borrowed; settings->events are the events */
	struct modules *modules;
	struct output *output;
	int epoll_fd;                    /* the rings are added here */
	const struct registry *registry; /* those whose heap is profiled too; NULL: nobody's */
	void (*answer)(
	    void *context, uint64_t asker, pid_t pid, const char *path, int error); /* see scheduler.h */
	void *context;
};

/* NULL with *error = -errno; 0: no events are asked for. */
struct event_scheduler *event_scheduler_new(const struct event_scheduler_setup *setup, int *error);
void event_scheduler_free(struct event_scheduler *scheduler);

/* No scheduler, NULL, is an scheduler without events to all that follow. */

/* COMMAND, before its exec. Returns 0 or -errno. */
int event_scheduler_attach_command(struct event_scheduler *scheduler, pid_t command);

/* Its end, with the wait status. */
void event_scheduler_end(struct event_scheduler *scheduler, int status);

/* It could not be executed. */
void event_scheduler_cancel(struct event_scheduler *scheduler);

/* Nobody will tell of COMMAND's end. */
void event_scheduler_orphan(struct event_scheduler *scheduler);

/* A process that runs already. Returns 0 or -errno. */
int event_scheduler_attach(struct event_scheduler *scheduler, pid_t pid);

/* No more samples; last profiles of all that live. */
void event_scheduler_stop(struct event_scheduler *scheduler);

/* Reads the rings, looks who has ended and writes what is due. Returns when to come again at the latest, in
 * ns from now. */
uint64_t event_scheduler_tend(struct event_scheduler *scheduler, uint64_t now_ns);

/* A snapshot of the process' heap was taken under that name. */
void event_scheduler_take(
    struct event_scheduler *scheduler, const struct process *process, const char *name, const char *cause);

/* As the scheduler's; of those subjects whose heap is not profiled. */
uint32_t event_scheduler_want_all(struct event_scheduler *scheduler, const char *cause, uint64_t asker);
uint32_t event_scheduler_ask(struct event_scheduler *scheduler, pid_t pid, uint64_t asker);

void event_scheduler_reap(struct event_scheduler *scheduler, pid_t pid, int status);

/* Is what has ended on disk? Is nobody left? */
bool event_scheduler_settled(const struct event_scheduler *scheduler);
bool event_scheduler_empty(const struct event_scheduler *scheduler);

#endif
