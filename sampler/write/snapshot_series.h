/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshots of one process: what the scheduler and its source remember from one to the next.
 *
 * Each part belongs to the file that is named beside it, and nothing else changes it.
 */
#ifndef SAMPLER_WRITE_SNAPSHOT_SERIES_H
#define SAMPLER_WRITE_SNAPSHOT_SERIES_H

#include "pprof/analysis/trend.h"
#include "pprof/text/throttle.h"
#include "sampler/linux/exit_status.h"
#include "sampler/write/interval.h"
#include "sampler/write/kept_files.h"
#include "sampler/write/resident_watch.h"
#include "sampler/write/snapshot_request.h"
#include "sampler/write/threshold_watch.h"

#include <stdbool.h>
#include <stdint.h>

struct target;
struct snapshot_source;

struct snapshot_series {
	/* The list of all series, whose scheduler makes and frees them. */
	struct snapshot_series *next_series, **link;
	struct target *target;          /* the process */
	struct snapshot_source *source; /* makes its snapshots */

	/* When: scheduler.c. */
	struct interval_clock periodic;              /* of the periodic snapshots */
	struct snapshot_request numbered, in_memory; /* steps: snapshot_request.c */
	uint64_t turn;         /* number of its last periodic snapshot among those of all processes */
	uint64_t refreshed_ns; /* when thread names and the cgroup were last read */
	struct oom_watch death;

	/* What the writer has: scheduler_write.c. */
	uint32_t next_number; /* of the next numbered snapshot, from 1 */
	uint32_t in_writer;   /* snapshots of any kind that are in the writer */
	uint64_t failed;      /* snapshots that could not be taken or written */
	int error;            /* of the last numbered one; 0: success */
	int beside_error;     /* of the last path that scheduler_reserve_beside() made */
	struct kept_files kept;

	/* What a heap has more: heap_source.c. */
	struct snapshot_heap {
		/* The program's own requests, of which some are refused. */
		uint32_t signals_seen, asked_seen;
		struct throttle requests;
		uint64_t refused;
		struct peak_file {
			char *path;           /* owned; NULL: none was made yet */
			uint64_t reserved_ns; /* when the path was made; monotonic */
			uint64_t order;       /* number of the peak in the file; 0: not written yet */
		} peak;                       /* peak.c */
		struct trend_series trend;    /* heap_trend.c */
		struct resident_watch resident;
		struct threshold_watch *thresholds; /* NULL: none */
		bool limit_said; /* that a threshold is crossed more often than there may be snapshots */
	} heap;
};

/* Of a process that is sampled since begin_ns. What was due until now_ns was taken by an earlier sampler.
 * interval_ns: see interval.h. NULL if out of memory. */
struct snapshot_series *snapshot_series_new(uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns);
void snapshot_series_free(struct snapshot_series *series); /* NULL is fine; leaves its list */

/* Puts a new series at the head of a list. */
void snapshot_series_enlist(struct snapshot_series *series, struct snapshot_series **list);

#endif
