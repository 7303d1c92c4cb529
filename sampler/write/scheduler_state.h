/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the scheduler share. No other file looks inside. */
#ifndef SAMPLER_WRITE_SCHEDULER_STATE_H
#define SAMPLER_WRITE_SCHEDULER_STATE_H

#include "pprof/text/throttle.h"
#include "sampler/write/scheduler_setup.h"
#include "sampler/write/snapshot_series.h"

struct scheduler {
	struct scheduler_setup setup;
	int64_t began_unix_ns; /* the session, on both clocks */
	uint64_t began_ns;
	pid_t began_pid;
	struct writer *writer;
	struct snapshot_series *series; /* of every profiled target */
	uint64_t look_ns;               /* time of the next look */
	uint64_t due_ns;                /* time at which a snapshot is due: the sampler wakes up for it */
	uint64_t turn;                  /* periodic snapshots so far */
	struct throttle early;          /* snapshots that come before the first minute is over */
	bool paused;
	uint64_t refresh_ns; /* between looks at the threads and the cgroup of each target */
	uint32_t closing;    /* closed targets whose last profile is not on disk yet */
	uint64_t ended;      /* targets with a last profile */
	uint64_t failed;     /* snapshots that could not be written since the last success */
	int error;           /* of the last one; 0: success */
};

/* scheduler.c: makes the series of a target. NULL if out of memory. */
struct snapshot_series *scheduler_series(struct snapshot_source *source, struct target *target);

/* scheduler.c: a target whose last profile is complete, or which has none, is not needed any more. */
void scheduler_release(struct snapshot_source *source, struct target *target);

/* scheduler_write.c: takes the snapshot that is due, or asked for, and gives it the next number. */
void scheduler_take_periodic(struct scheduler *scheduler, struct snapshot_series *series, const char *cause);
void scheduler_take_asked(struct scheduler *scheduler, struct snapshot_series *series);
void scheduler_take_memory(struct scheduler *scheduler, struct snapshot_series *series);

/* scheduler_write.c: takes the last profile of a target that has ended. Returns 0 or -errno. */
int scheduler_take_last(struct scheduler *scheduler, struct target *target);

/* scheduler_write.c: whatever is asked for will not be taken. A client or a program that asked need not
 * wait. */
void scheduler_refuse(struct scheduler *scheduler, struct snapshot_series *series);

/* scheduler_write.c: no snapshot is left for clients that still wait. */
void scheduler_answer_all(struct scheduler *scheduler, struct snapshot_series *series, int error);

/* scheduler_write.c: for the writer. */
void scheduler_on_written(void *context, const struct writer_item *item, int error);

#endif
