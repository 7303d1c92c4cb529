/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot of a process' heap: a profile in a file, and further files: the peak so far, the difference to
 * the previous snapshot, the time line, the lifetimes.
 */
#ifndef SAMPLER_SNAPSHOT_HEAP_SNAPSHOT_H
#define SAMPLER_SNAPSHOT_HEAP_SNAPSHOT_H

#include "sampler/heap/heap_view.h"
#include "sampler/heap/process.h"
#include "sampler/snapshot/resident_watch.h"
#include "sampler/snapshot/snapshot.h"

#include <limits.h>

struct heap_snapshot {
	struct snapshot base; /* first */
	struct process *process;
	struct heap_view view;
	char path[PATH_MAX]; /* base.path */
	char session[1024];  /* backend, period and losses of the whole session: a comment of its own */
	char trouble[384];   /* snapshots skipped, failed and refused, sampling paused: likewise, or empty */
	uint64_t period_bytes;
	struct live_scan live_scan; /* with lifetimes_path: for the ages of live blocks; else empty */
	/* Of the snapshot's own moment; of an ended process: the last ones before. */
	struct resident_watch resident;
	uint64_t frees_lost; /* lifetimes lost, of all processes of the image */

	/* Further files of the same instant; path NULL: not written this time. The paths belong to the
	 * series. */
	const char *peak_path;
	struct heap_view peak;
	int64_t peak_unix_ns, peak_missing;
	char *delta_path; /* owned */
	struct heap_view delta;
	uint64_t delta_ns; /* since the snapshot before */
	const char *timeline_path, *lifetimes_path;
	const struct timeline *timeline; /* borrowed from the series */
};

/* NULL: out of memory. Its item publishes the profile, then the others: 0, or -errno of the first that
 * failed; the others are tried all the same. */
struct heap_snapshot *heap_snapshot_new(void);

#endif
