/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: the books of one process at one instant, with names, as a profile in a file; and what goes with
 * it: the peak so far, the difference to the snapshot before, the time line, the lifetimes.
 *
 * It is written in a forked child of the sampler: the fork is the consistent copy, draining goes on
 * meanwhile, and a debug file that kills libdw takes only the child with it.
 */
#ifndef SAMPLER_SNAPSHOT_SNAPSHOT_H
#define SAMPLER_SNAPSHOT_SNAPSHOT_H

#include "sampler/heap/process.h"
#include "sampler/heap/heap_view.h"
#include "sampler/snapshot/snapshot_series.h"
#include "sampler/snapshot/writer.h"

#include <limits.h>

enum snapshot_kind {
	SNAPSHOT_NUMBERED, /* 0001, 0002...: by interval, signal, request or the program's own wish */
	SNAPSHOT_EXIT,
};

struct snapshot {
	struct writer_item item; /* first: the writer knows nothing else */
	struct process *process;
	enum snapshot_kind kind;
	uint32_t number; /* NUMBERED */
	struct heap_view view;
	char path[PATH_MAX];
	char cause[512];   /* "0001, every 60 s": what the comment says after "snapshot: " */
	char session[512]; /* backend, period and losses of the whole session: a comment of its own */
	char trouble[256]; /* snapshots skipped and failed, sampling paused: likewise, or empty */
	char host[65];
	uint64_t period_bytes;
	bool debuginfod;            /* debug files may be fetched */
	bool sync;                  /* fsync before the rename */
	int64_t unix_ns;            /* when the books were read */
	struct live_scan live_scan; /* with lifetimes_path: the live blocks' ages; else empty */
	uint64_t frees_lost;        /* lifetimes that nobody saw, of all processes of the image */

	/* More files of the same instant; a NULL path: not this time. The paths are the series'. */
	const char *peak_path;
	struct heap_view peak;
	int64_t peak_unix_ns, peak_missing;
	char *delta_path; /* owned */
	struct heap_view delta;
	uint64_t delta_ns; /* since the snapshot before */
	const char *timeline_path, *lifetimes_path;
	const struct timeline *timeline; /* borrowed from the series */

	/* Who is to be told when it is complete; see sampler/session/control.h. */
	uint64_t askers[SNAPSHOT_ASKERS];
	uint32_t asker_count;
};

/*
 * NULL: out of memory. Its item builds, encodes and publishes the profile, then the others: 0, or -errno of
 * the first that failed; the others are tried all the same.
 */
struct snapshot *snapshot_new(void);
void snapshot_free(struct snapshot *snapshot);

#endif
