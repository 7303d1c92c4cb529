/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of one subject at one instant, symbolized, as one profile per event. Written in a forked child of
 * the sampler like every snapshot.
 *
 * A profile covers everything since the subject began: sample types samples/count and cpu/nanoseconds for a
 * clock, EVENT/count for others, and resident/bytes for faults. Unlike a heap profile it has a duration, its
 * innermost address is exact, and no frame is cut off.
 */
#ifndef SAMPLER_SNAPSHOT_EVENT_SNAPSHOT_H
#define SAMPLER_SNAPSHOT_EVENT_SNAPSHOT_H

#include "sampler/events/event_process.h"
#include "sampler/perf/counter.h"
#include "sampler/snapshot/profile_job.h"
#include "sampler/snapshot/snapshot.h"

/* One event's part. */
struct event_job {
	struct profile_job base;   /* first; the path is owned */
	const struct event *event; /* borrowed */
	struct event_row *rows;
	size_t count;
	struct event_row total;         /* of the rows */
	struct event_row sum;           /* of all subjects of the session */
	struct counter_totals counters; /* likewise, as counted by the kernel */
	uint64_t throttled;
	/* lost samples, if they can only be this subject's, because there was no other */
	uint64_t lost_here;
};

struct event_snapshot {
	struct snapshot base; /* first */
	struct event_process *subject;
	uint64_t duration_ns, bad;
	struct event_job jobs[EVENTS_MAX];
	size_t job_count;
};

/* NULL: out of memory. Its item writes every job: 0, or -errno of the first that failed. */
struct event_snapshot *event_snapshot_new(void);

/* Where an event's profile goes. Returns 0 or -ENOMEM. */
int event_snapshot_set_path(struct event_snapshot *snapshot, size_t event, const char *path);

/* Says on stderr what was written when a process has ended. */
void event_snapshot_print(const struct snapshot *snapshot);

/* The factor that scales the rows of a job up for multiplexing. */
double event_job_scale(const struct event_job *job);

#endif
