/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The series of one process' snapshots: the next number and when it is due, what waits to be taken, which
 * files exist.
 *
 * At most one numbered snapshot of a process is in the writer. All requests that arrive meanwhile are served
 * by one snapshot after it. A periodic snapshot waits until the next one is due, and is then skipped.
 */
#ifndef SAMPLER_SNAPSHOT_SNAPSHOT_SERIES_H
#define SAMPLER_SNAPSHOT_SNAPSHOT_SERIES_H

#include "pprof/analysis/trend_series.h"
#include "pprof/text/throttle.h"
#include "sampler/linux/exit_status.h"
#include "sampler/snapshot/resident_watch.h"
#include "sampler/snapshot/threshold_watch.h"

#include <stdbool.h>
#include <stdint.h>

struct sink;
struct target;
struct snapshot_source;

enum { SNAPSHOT_ASKERS = 16 }; /* clients that can wait for one snapshot: all of the control socket */

/* Asked for as shared memory: see in_memory.h. */
struct in_memory {
	uint64_t askers[SNAPSHOT_ASKERS];
	uint32_t asker_count;
	bool writing;
};

/* The file of the peak, see peak.h. */
struct peak_file {
	char *path;          /* owned; NULL: none was made yet */
	uint64_t claimed_ns; /* when the path was made; monotonic */
	uint64_t order;      /* number of the peak in the file; 0: the file was not written yet */
};

struct snapshot_series {
	/* all series of a scheduler, which makes and frees them */
	struct snapshot_series *next_series, **link;
	struct target *target;          /* the process */
	struct snapshot_source *source; /* where its snapshots come from */
	uint32_t next;                  /* number, from 1 */
	uint64_t begin_ns;              /* since when the process is sampled */
	uint64_t interval_ns;           /* by which due_ns was reckoned */
	uint64_t due_ns;                /* of the next periodic one; monotonic */
	bool waiting;                   /* the periodic one is due, and there is something to write */
	uint64_t turn;                  /* of the periodic ones of all series: which it was, the last time */
	bool writing;                   /* a numbered one is in the writer */
	uint32_t jobs;                  /* in the writer, of any kind */
	uint64_t skipped, failed;
	uint64_t refused;             /* requests of the program that were refused */
	struct throttle own_requests; /* of the program */
	int error;                    /* of the last one that was tried; 0: success */
	uint64_t refreshed_ns;        /* when thread names and cgroup were last looked at */

	/* asked for */
	bool wanted;
	bool wanted_by_hand;   /* by a user, not only by the program */
	bool wanted_by_a_rule; /* a threshold was crossed */
	bool wanted_at_once;   /* the sampler's user waits for it, and not only one of the process' */
	char wanted_cause[384], wanted_name[64];
	uint64_t askers[SNAPSHOT_ASKERS];
	uint32_t asker_count;
	uint32_t signals_seen, asked_seen;
	struct in_memory in_memory;

	struct peak_file peak;
	int beside_error; /* of the last path that scheduler_claim_beside() made */
	struct snapshot_series_file {
		char *path, *delta_path;
		bool first;     /* of its snapshot, which may have several */
		bool by_a_rule; /* a threshold was crossed */
	} * kept;               /* oldest first */
	size_t kept_count, kept_capacity;

	struct trend_series trend; /* of its heap, see heap_trend.h */
	struct resident_watch resident;
	struct oom_watch death;
	struct threshold_watch *thresholds; /* NULL: none */
	bool limit_said;                    /* that it crosses one more often than there may be snapshots */
};

/* Of a process that is sampled since begin_ns: what was due until now_ns counts as taken, by an earlier
 * sampler. interval_ns: see schedule.h, as below. NULL: out of memory. */
struct snapshot_series *snapshot_series_new(uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns);
void snapshot_series_free(struct snapshot_series *series); /* NULL is fine; leaves its list */

/* Puts a new series at the head of a list. */
void snapshot_series_enlist(struct snapshot_series *series, struct snapshot_series **list);

/* Is the periodic snapshot due? Counts snapshots whose time has passed in `skipped`. */
enum snapshot_series_due {
	SNAPSHOT_SERIES_NOT_DUE,
	SNAPSHOT_SERIES_DUE,
};
enum snapshot_series_due snapshot_series_look(
    struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns);

/* A periodic snapshot was taken, or not needed. */
void snapshot_series_advance(struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns);

/* Requests a snapshot. Until it is taken, the first cause and name are kept. name: of the program, if it asks
 * itself; NULL: a user does. asker 0: no client waits. False: too many clients wait. */
bool snapshot_series_want(
    struct snapshot_series *series, const char *cause, const char *name, uint64_t asker);

/* The same because a threshold was crossed: the cause is added to those of a snapshot that waits already. */
void snapshot_series_want_by_rule(struct snapshot_series *series, const struct threshold_crossing *crossing);

/* May the program have one more? It may have a burst of 16, then one a second; the rest is counted in
 * `refused`. */
bool snapshot_series_allows(struct snapshot_series *series, uint64_t now_ns);

/* A file of a numbered snapshot is in the sink. Removes the oldest snapshots beyond `keep` (0: keeps all), of
 * those by thresholds and of all others each, so that the clock's do not push out the rarer ones. Strings are
 * copied. Returns 0 or -ENOMEM. */
int snapshot_series_keep(struct snapshot_series *series, const struct snapshot_series_file *file, size_t keep,
    const struct sink *sink);

#endif
