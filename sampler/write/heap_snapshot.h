/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of a process' heap: a profile of what is in use, and two more profiles beside it. The peak is
 * the heap at its largest so far. The delta is what was allocated since the periodic snapshot before.
 */
#ifndef SAMPLER_WRITE_HEAP_SNAPSHOT_H
#define SAMPLER_WRITE_HEAP_SNAPSHOT_H

#include "sampler/books/heap_view.h"
#include "sampler/books/process.h"
#include "sampler/books/unseen.h"
#include "sampler/write/resident_watch.h"
#include "sampler/write/snapshot.h"
#include "sampler/write/symbolizer.h"

#include <limits.h>

struct live_scan;
struct scheduler;

/* ---- the part of a process that a snapshot of its heap does not show, and why (heap_snapshot_unseen.c) */

struct heap_snapshot_unseen {
	struct unseen_facts facts;
	struct unseen texts; /* made of the facts */
};

/* Sets all fields. */
void heap_snapshot_unseen_look(struct heap_snapshot_unseen *unseen, const struct process *process,
    const struct resident_watch *resident, const struct heap_view *view);

/* Adds the comments. Called in the writer's child, where the names of the view's functions are known. */
void heap_snapshot_unseen_comment(struct profile *profile, const struct heap_snapshot_unseen *unseen,
    const struct heap_view *view, const struct symbolizer *symbolizer);

/* ---- the snapshot */

struct heap_snapshot {
	struct snapshot base; /* first */
	struct process *process;
	struct heap_view view;
	char path[PATH_MAX]; /* base.path */
	char session[1024];  /* a comment: backend, period and losses of the whole session */
	char trouble[384];   /* a comment: snapshots skipped, failed and refused, sampling paused; or "" */
	/* The profile's period is the largest that any of its samples had, because readers reckon errors by
	 * it. The present one may be lower. */
	uint64_t period_bytes, present_period_bytes;
	uint64_t scan_ns; /* when the live blocks were looked at; monotonic */
	/* Dumps that the kernel was asked for and that have not come. They are missing because rings were
	 * full, if any ring of this session was. */
	uint64_t dumps_missing;
	bool rings_were_full;
	/* Read for this snapshot. After the end of a process: read before. */
	struct resident_watch resident;
	struct lifetime lifetimes; /* of all freed blocks */
	uint64_t frees_missing;
	struct heap_snapshot_unseen unseen;

	/* The profiles beside it, of the same instant. Paths are owned; NULL: not written this time. */
	char *peak_path;
	struct heap_view peak;
	uint64_t peak_order;
	int64_t peak_unix_ns, peak_missing;
	char *delta_path;
	struct heap_view delta;
	uint64_t delta_ns; /* since the periodic snapshot before */
};

/* NULL if out of memory. Its item publishes all profiles, even if one fails, and returns 0 or -errno of the
 * first that failed. */
struct heap_snapshot *heap_snapshot_new(void);

/* The cause of loss of dumps that are missing. */
const char *heap_snapshot_why_missing(const struct heap_snapshot *snapshot);

/*
 * ---- the peak
 *
 * The process finds its own peak. Each time it counts a block, it compares what is live with the largest sum
 * so far, and gives a larger one the next number (preload/tally.c). The blocks of the peak keep their slots
 * until the next peak (preload/slot.c). A snapshot copies those slots (intake/live_scan.c), makes rows of
 * them (books/heap_view.c), and writes them here.
 *
 * One file holds the peak; each new peak replaces it. A store removes files by the time in their names. So
 * in a store the file gets a new name twice a day, and a process that runs for longer than `days` still has a
 * peak.
 */

/* Adds the peak to the snapshot: a numbered one gets it only if it is not in the file yet. */
void heap_snapshot_add_peak(const struct scheduler *scheduler, struct heap_snapshot *snapshot,
    struct snapshot_series *series, const struct live_scan *scan);

/* The snapshot is on disk, with the peak that was added to it. */
void heap_snapshot_peak_written(struct snapshot_series *series, const struct heap_snapshot *snapshot);

#endif
