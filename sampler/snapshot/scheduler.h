/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: every snapshot of the session, from the reason for it to the files on disk.
 *
 *   interval           scheduler_tend, when a target's is due (schedule.h)
 *   signal, API        snapshot_series_want, by a source that has seen the request
 *   threshold          snapshot_series_want_by_rule, likewise
 *   SIGUSR1 to us      scheduler_want_all
 *   heaptap snapshot   scheduler_want_all
 *   heaptap serve      scheduler_ask_memory: no file
 *   end                the source's listener: closed, once per target
 *
 * A source decides what is in a snapshot: there is one for heaps and one for events (heap_source.h,
 * event_source.h). A periodic snapshot is only taken when the writer has a free child.
 */
#ifndef SAMPLER_SNAPSHOT_SCHEDULER_H
#define SAMPLER_SNAPSHOT_SCHEDULER_H

#include "sampler/snapshot/scheduler_setup.h"
#include "sampler/snapshot/snapshot.h"

struct scheduler;
struct snapshot_source;

enum snapshot_reason {
	SNAPSHOT_REQUESTED,
	SNAPSHOT_DUE,
	SNAPSHOT_END,
};

/* Why the last profile of a target is not written. */
enum snapshot_drop {
	SNAPSHOT_DROP_CROWD, /* more wait than may */
	SNAPSHOT_DROP_PAUSED,
	SNAPSHOT_DROPS,
};

struct snapshot_request {
	enum snapshot_kind kind;
	const char *name;  /* of the file, and the first word of the comment: "0001", "exit" */
	const char *cause; /* "every 60 s" */
	bool periodic;
	bool by_hand;   /* a user asked for it, and no program */
	bool by_a_rule; /* a threshold was crossed */
};

struct snapshot_source_kind {
	/* Looks for requests by a live target; rarely: true about once a second. May be NULL. */
	void (*look)(struct snapshot_source *source, struct target *target, uint64_t now_ns, bool rarely);
	/* The part of look() that is due at the target's end too: what it has asked for. May be NULL. */
	void (*look_for_requests)(struct snapshot_source *source, struct target *target, uint64_t now_ns);
	/* Is there anything to write? */
	bool (*has)(
	    const struct snapshot_source *source, const struct target *target, enum snapshot_reason reason);
	bool in_memory; /* take() can make SNAPSHOT_MEMORY: of one profile, without any other file */
	bool grows;     /* what grows is asked of it: see schedule.h */
	/* Makes a snapshot: its item, files, and unix_ns; the scheduler fills in the rest. Returns 0 or
	 * -errno. */
	int (*take)(struct snapshot_source *source, struct target *target,
	    const struct snapshot_request *request, struct snapshot **snapshot);
	/* A numbered one was taken, or could not be: -errno. May be NULL. */
	void (*taken)(struct snapshot_source *source, struct target *target,
	    const struct snapshot_request *request, int error);
	/* A numbered one is on disk, or could not be written: -errno. May be NULL. */
	void (*written)(struct snapshot_series *series, const struct snapshot *snapshot, int error);
	/* The same of one that no user asked for: removes the files that are no longer kept. After an error
	 * too, as some of its files may be there. */
	void (*keep)(struct snapshot_series *series, const struct snapshot *snapshot, size_t count);
	/* The last profile of an ended target is on disk, or could not be written (-errno, which has been
	 * logged): for the user's summary. Not called if the user wants none (-q). */
	void (*ended)(struct snapshot_source *source, const struct snapshot *snapshot, int error);
	/* A target has ended without one, because has() said no. May be NULL. */
	void (*omitted)(struct snapshot_source *source, const struct target *target);
	/* A target has ended, and its profile will not be written. May be NULL where neither setup.may_wait
	 * nor scheduler_pause is used. */
	void (*dropped)(struct snapshot_source *source, const struct target *target, enum snapshot_drop why);
	/* The last profile of a closed target was written. */
	void (*release)(struct snapshot_source *source, struct target *target);
};

/* The beginning of a struct of the source's. */
struct snapshot_source {
	const struct snapshot_source_kind *kind;
	struct scheduler *scheduler;
};

struct scheduler *scheduler_new(const struct scheduler_setup *setup);
void scheduler_free(struct scheduler *scheduler);
const struct scheduler_setup *scheduler_setup(const struct scheduler *scheduler);

/* Are so many samples of its heap enough for a profile that nobody has asked for? */
bool scheduler_is_enough(const struct scheduler *scheduler, const struct target *target, uint64_t samples);

/* For the registry whose targets the source takes snapshots of. */
struct target_listener scheduler_listener(struct snapshot_source *source);

/* Does what is due. Must be called again after the returned time in ns, or earlier. */
uint64_t scheduler_tend(struct scheduler *scheduler, uint64_t now_ns);

/* The next scheduler_tend looks at every target. */
void scheduler_hurry(struct scheduler *scheduler);

/* While paused nothing is written: what is due is skipped, who asks is refused, the last profiles of those
 * who end are dropped; each is counted. What was taken before is still written. */
void scheduler_pause(struct scheduler *scheduler, bool paused);

/* Requests snapshots of all live targets, or of one: returns how many (0: the process is not ours). asker:
 * see control/control_server.h; 0: nobody waits. */
uint32_t scheduler_want_all(struct scheduler *scheduler, const char *cause, uint64_t asker);
uint32_t scheduler_ask(struct scheduler *scheduler, pid_t pid, uint64_t asker);
/* The same for snapshots as shared memory: of the process, or of all (pid 0). */
uint32_t scheduler_ask_memory(struct scheduler *scheduler, pid_t pid, uint64_t asker);
/* That asker has gone, and its place in each series is free for another. Also from within an answer to it. */
void scheduler_forget(struct scheduler *scheduler, uint64_t asker);
bool scheduler_serves(const struct scheduler *scheduler, pid_t pid); /* is the process ours? */

/* When a process began to execute its program, as all of its profiles say it. */
int64_t scheduler_start_unix_ns(const struct scheduler *scheduler, const struct target *target);

/* Calls `visit` with every live process whose snapshots come from that source. */
void scheduler_each(const struct scheduler *scheduler, const struct snapshot_source *source,
    void (*visit)(void *context, const struct target *target, int64_t start_unix_ns), void *context);

/* Takes a numbered snapshot beside another one of the same process, which was taken by this request. */
void scheduler_take(
    struct snapshot_source *source, struct target *target, const struct snapshot_request *request);

/* Claims the path of a target's file. Returns 0 or -errno. */
int scheduler_claim(const struct scheduler *scheduler, const struct target *target, const char *name,
    char *path, size_t path_bytes);

/* The same for another file of the same instant. Returns a copy, for free(). NULL if there is no path: the
 * error is logged once. */
char *scheduler_claim_beside(
    const struct scheduler *scheduler, const struct target *target, const char *name);

/* A child of the sampler has ended. */
void scheduler_reap(struct scheduler *scheduler, pid_t pid, int status);

/* The user waits for everything that is being written: from now on no child yields to other processes. */
void scheduler_hurry_writing(struct scheduler *scheduler, bool hurry);

/* Whether its last profile waits to be written, or is being written. */
bool scheduler_is_closing(const struct target *target);

/* Profiles of ended processes: how many were written (or given up), and how many there are. */
void scheduler_progress(const struct scheduler *scheduler, uint64_t *written, uint64_t *ended);

/* True when everything that has ended is on disk. */
bool scheduler_settled(const struct scheduler *scheduler);

/* True when also every requested snapshot is. */
bool scheduler_idle(const struct scheduler *scheduler);

#endif
