/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of a process' perf events: one profile for each event. A forked child of the sampler writes it,
 * like every snapshot.
 *
 * A profile covers everything since the process was found. Its sample types are samples/count and
 * cpu/nanoseconds for a clock, EVENT/count for other events, and resident/bytes for faults. Unlike a heap
 * profile it has a duration, its innermost address is exact, and no frame is cut off.
 */
#ifndef SAMPLER_WRITE_EVENT_SNAPSHOT_H
#define SAMPLER_WRITE_EVENT_SNAPSHOT_H

#include "sampler/books/event_process.h"
#include "sampler/perf/counters.h"
#include "sampler/write/profile_job.h"
#include "sampler/write/snapshot.h"

/* The profile of one event. */
struct event_job {
	struct profile_job base;   /* first; the path is owned */
	const struct event *event; /* borrowed */
	struct event_row *rows;
	size_t count;
	struct event_row total;         /* of the rows */
	struct event_row sum;           /* of all processes of the session */
	struct counter_totals counters; /* of all processes, as the kernel counted */
	uint64_t throttled;
	/* Lost samples. Only if no other process was sampled: else it is not known whose samples were lost.
	 * */
	uint64_t lost_here;
};

struct event_snapshot {
	struct snapshot base; /* first */
	struct event_process *subject;
	uint64_t duration_ns, bad;
	struct event_job jobs[EVENTS_MAX];
	size_t job_count;
};

/* NULL if out of memory. Its item writes every profile, and returns 0 or -errno of the first that failed. */
struct event_snapshot *event_snapshot_new(void);

/* Sets the path of an event's profile. Returns 0 or -ENOMEM. */
int event_snapshot_set_path(struct event_snapshot *snapshot, size_t event, const char *path);

/* Tells the user what was written when a process has ended. */
void event_snapshot_print(const struct snapshot *snapshot);

#endif
