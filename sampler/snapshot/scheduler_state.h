/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler's files share: nobody else looks inside.
 */
#ifndef SAMPLER_SNAPSHOT_SCHEDULER_STATE_H
#define SAMPLER_SNAPSHOT_SCHEDULER_STATE_H

#include "sampler/snapshot/scheduler_setup.h"
#include "sampler/snapshot/snapshot_series.h"

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
	uint64_t early_until_ns;        /* the early snapshots so far, at one a second, last until then */
	bool paused;
	uint64_t refresh_ns; /* of each target */
	uint32_t closing;    /* closed targets whose last profile is not on disk yet */
	uint64_t ended;      /* targets with a last profile */
	uint64_t failed;     /* failed snapshots since the last one that was written */
	int error;           /* of the last that failed */
};

/* Of those whose periodic snapshot waits, the one whose last was the longest ago, among those for whose
 * account the writer has room; NULL: there is none. Where writing takes longer than the interval, something
 * is due whenever a child is free: so each series gets its turn. */
struct snapshot_series *scheduler_next_in_turn(const struct scheduler *scheduler);

/* Is there room for one more early snapshot? It is taken from it. */
bool scheduler_allows_early(struct scheduler *scheduler, uint64_t now_ns);

#endif
