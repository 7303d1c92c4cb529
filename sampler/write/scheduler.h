/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: says when a snapshot of a process is written, and follows it until the files are on disk.
 *
 *   interval           a process' clock (interval.h), looked at by scheduler_tend
 *   program, signal    the source sees it in shared memory (heap_source.c)
 *   threshold          the source sees it likewise (threshold_watch.h)
 *   SIGUSR1 to us      scheduler_ask_all
 *   heaptap snapshot   scheduler_ask, or scheduler_ask_all
 *   heaptap serve      scheduler_ask_memory: no file
 *   end                the source's listener: closed, once per target
 *
 * All of them but the end are one request (snapshot_series.h). A periodic snapshot is taken only when the
 * writer has room for it.
 *
 * A source makes the snapshots (snapshot.h): there is one for heaps and one for events.
 */
#ifndef SAMPLER_WRITE_SCHEDULER_H
#define SAMPLER_WRITE_SCHEDULER_H

#include "sampler/write/scheduler_setup.h"
#include "sampler/write/snapshot.h"

struct scheduler *scheduler_new(const struct scheduler_setup *setup);
void scheduler_free(struct scheduler *scheduler);
const struct scheduler_setup *scheduler_setup(const struct scheduler *scheduler);

/* Does a target with so many samples of its heap get a profile that nobody has asked for? */
bool scheduler_is_enough(const struct scheduler *scheduler, const struct target *target, uint64_t samples);

/* The listener for the registry that has the targets of the source. */
struct target_listener scheduler_listener(struct snapshot_source *source);

/* Does what is due. Must be called again after the returned time in ns, or earlier. */
uint64_t scheduler_tend(struct scheduler *scheduler, uint64_t now_ns);

/* The next scheduler_tend looks at every target. */
void scheduler_hurry(struct scheduler *scheduler);

/* While paused nothing is taken, and each loss is counted: a periodic snapshot is skipped, a request is
 * refused, a last profile is dropped. What was taken before is still written. */
void scheduler_pause(struct scheduler *scheduler, bool paused);

/* Asks for snapshots of all live targets, or of one. Returns of how many (0: the process is not ours). asker:
 * see core/control_server.h; 0: nobody waits. */
uint32_t scheduler_ask_all(struct scheduler *scheduler, const char *cause, uint64_t asker);
uint32_t scheduler_ask(struct scheduler *scheduler, pid_t pid, uint64_t asker);
/* The same for snapshots in shared memory: of the process, or of all (pid 0). */
uint32_t scheduler_ask_memory(struct scheduler *scheduler, pid_t pid, uint64_t asker);
/* The asker has gone: its place in each series is free for another. May be called from within an answer. */
void scheduler_forget(struct scheduler *scheduler, uint64_t asker);

bool scheduler_serves(const struct scheduler *scheduler, pid_t pid); /* is the process ours? */

/* When a process began to execute its program, as all of its profiles say it. */
int64_t scheduler_start_unix_ns(const struct scheduler *scheduler, const struct target *target);

/* Calls `visit` with every live process whose snapshots come from that source. */
void scheduler_each(const struct scheduler *scheduler, const struct snapshot_source *source,
    void (*visit)(void *context, const struct target *target, int64_t start_unix_ns), void *context);

/* Takes a numbered snapshot beside another one of the same process, which was taken by this order. */
void scheduler_take_beside(
    struct snapshot_source *source, struct target *target, const struct snapshot_order *order);

/* Makes the path of a target's next file: no other file gets it. Returns 0 or -errno. */
int scheduler_reserve(const struct scheduler *scheduler, const struct target *target, const char *name,
    char *path, size_t path_bytes);

/* The same for another file of the same instant. Returns a copy, for free(). NULL if there is no path: the
 * error is logged once. */
char *scheduler_reserve_beside(
    const struct scheduler *scheduler, const struct target *target, const char *name);

/* A child of the sampler has ended. */
void scheduler_reap(struct scheduler *scheduler, pid_t pid, int status);

/* hurry: the user waits for everything that is being written, so no child yields to other processes. */
void scheduler_hurry_writing(struct scheduler *scheduler, bool hurry);

/* Does the last profile of a target wait to be written, or is it being written? */
bool scheduler_is_closing(const struct target *target);

/* Profiles of ended processes: how many were written (or given up), and how many there are. */
void scheduler_progress(const struct scheduler *scheduler, uint64_t *written, uint64_t *ended);

/* True when everything that has ended is on disk. */
bool scheduler_settled(const struct scheduler *scheduler);

/* True when also every requested snapshot is. */
bool scheduler_idle(const struct scheduler *scheduler);

#endif
