/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of a process' heap: a profile of what is in use, and two more profiles beside it. The peak is
 * the heap at its largest so far. The delta is what was allocated since the periodic snapshot before.
 */
#ifndef SAMPLER_SNAPSHOT_HEAP_SNAPSHOT_H
#define SAMPLER_SNAPSHOT_HEAP_SNAPSHOT_H

#include "sampler/heap/heap_view.h"
#include "sampler/heap/process.h"
#include "sampler/snapshot/resident_watch.h"
#include "sampler/snapshot/snapshot.h"
#include "sampler/snapshot/snapshot_unseen.h"

#include <limits.h>

struct heap_snapshot {
	struct snapshot base; /* first */
	struct process *process;
	struct heap_view view;
	char path[PATH_MAX]; /* base.path */
	char session[1024];  /* backend, period and losses of the whole session: a comment of its own */
	char trouble[384];   /* snapshots skipped, failed and refused, sampling paused: likewise, or empty */
	/* The profile's, by which readers reckon errors: the largest that any of its samples had. It may have
	 * been lowered since. */
	uint64_t period_bytes, present_period_bytes;
	uint64_t scan_ns; /* when the live blocks were looked at; monotonic */
	/* Dumps that the kernel was asked for and that have not come; and whether rings were full in this
	 * session, which is why. */
	uint64_t dumps_missing;
	bool rings_were_full;
	/* Of the snapshot's own moment; of an ended process: the last ones before. */
	struct resident_watch resident;
	struct lifetime lifetimes; /* of all freed blocks */
	uint64_t frees_missing;
	struct snapshot_unseen unseen;

	/* Further files of the same instant; path NULL: not written this time. The paths are owned. */
	char *peak_path;
	struct heap_view peak;
	uint64_t peak_order;
	int64_t peak_unix_ns, peak_missing;
	char *delta_path;
	struct heap_view delta;
	uint64_t delta_ns; /* since the snapshot before */
};

/* NULL: out of memory. Its item publishes the profile, then the others: 0, or -errno of the first that
 * failed; the others are tried all the same. */
struct heap_snapshot *heap_snapshot_new(void);

/* Why dumps are missing, as a cause of loss. */
const char *heap_snapshot_why_missing(const struct heap_snapshot *snapshot);

#endif
