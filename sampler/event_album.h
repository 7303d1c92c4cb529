/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything about events in one session: counters, intake, and when which profile is written.
 *
 * A process that is also profiled for its heap has its events written whenever its heap is, under the same
 * number (event_album_take). For all others the same rules hold by themselves: interval, SIGUSR1 to the
 * sampler, `heaptap snapshot`, the end.
 */
#ifndef SAMPLER_EVENT_ALBUM_H
#define SAMPLER_EVENT_ALBUM_H

#include "sampler/control.h"
#include "sampler/event.h"
#include "sampler/options.h"
#include "sampler/output.h"
#include "sampler/process.h"
#include "sampler/roster.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_album;

/* three samples; what an unprivileged user is left beside the heap's rings */
enum { EVENT_RING_BYTES_LEAST = 128 << 10 };

struct event_album_setup {
	const struct options *options; /* these are borrowed; options->events are the events */
	struct modules *modules;
	struct output *output;
	struct control **control;    /* *control NULL: nobody can ask */
	int epoll_fd;                /* the rings are added here */
	const struct roster *roster; /* those whose heap is profiled too; NULL: nobody's */
};

/* NULL with *error = -errno; 0: no events are asked for. */
struct event_album *event_album_new(const struct event_album_setup *setup, int *error);
void event_album_free(struct event_album *album);

/* No album, NULL, is an album without events to all that follow. */

/* COMMAND, before its exec: tells the front ATTACHED or FAILED (sampler/message.h); FAILED too if there is no
 * album because of an error. */
void event_album_greet(struct event_album *album, pid_t command, int front_fd, int error);

/* Its end, with the wait status. */
void event_album_end(struct event_album *album, int status);

/* It could not be executed. */
void event_album_cancel(struct event_album *album);

/* Nobody will tell of COMMAND's end. */
void event_album_orphan(struct event_album *album);

/* A process that runs already. Returns 0 or -errno. */
int event_album_attach(struct event_album *album, pid_t pid);

/* No more samples; last profiles of all that live. */
void event_album_stop(struct event_album *album);

/* Reads the rings, looks who has ended and writes what is due. Returns when to come again at the latest, in
 * ns from now. */
uint64_t event_album_tend(struct event_album *album, uint64_t now_ns);

/* A snapshot of the process' heap was taken under that name. */
void event_album_take(
    struct event_album *album, const struct process *process, const char *name, const char *cause);

/* As the album's; of those subjects whose heap is not profiled. */
uint32_t event_album_want_all(struct event_album *album, const char *cause, uint64_t asker);
uint32_t event_album_ask(struct event_album *album, pid_t pid, uint64_t asker);

void event_album_reap(struct event_album *album, pid_t pid, int status);

/* Is what has ended on disk? Is nobody left? */
bool event_album_settled(const struct event_album *album);
bool event_album_empty(const struct event_album *album);

#endif
