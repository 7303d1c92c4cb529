/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of heaps.
 *
 * A snapshot is made in four steps: 1. copy the live slots (live_scan), 2. drain rings and buffers, 3. join
 * books and slots into rows (heap_view), 4. the writer forks a child that symbolizes and writes
 * (heap_snapshot).
 */
#ifndef SAMPLER_WRITE_HEAP_SOURCE_H
#define SAMPLER_WRITE_HEAP_SOURCE_H

#include "sampler/books/registry.h"
#include "sampler/write/event_source.h"
#include "sampler/write/scheduler.h"
#include "sampler/write/summary_list.h"

/* ---- processes that ended without a last profile: how many they are by the reason for it, and what they
 * counted (heap_source_dropped.c) */

struct heap_source_dropped {
	struct tally allocated;
	uint64_t processes;
	double at_end_bytes;      /* of SNAPSHOT_DROP_FEW: in use at their ends */
	uint64_t unsaid, said_ns; /* of the others: processes since the last line in the log */
};

/* What a process of few samples has in use, without blocks that were inherited, which the parent counts.
 * Nothing if out of memory. */
struct tally heap_source_dropped_in_use(const struct process *process);

/* Counts a process. at_end: of SNAPSHOT_DROP_FEW, what it had in use. */
void heap_source_dropped_add(struct heap_source_dropped dropped[SNAPSHOT_DROPS],
    const struct process *process, enum snapshot_drop why, struct tally at_end);

/* Says how many processes have no last profile for that reason, and what they counted. False if there are
 * none: the text is "". */
bool heap_source_dropped_describe(const struct heap_source_dropped dropped[SNAPSHOT_DROPS],
    enum snapshot_drop why, char *text, size_t text_bytes);

/* ---- the source */

enum { HEAP_SOURCE_WRITTEN = 256 };

struct heap_source {
	struct snapshot_source base; /* first */
	struct registry *registry;   /* borrowed */
	struct event_source *events; /* borrowed: takes its own snapshot with each numbered one; NULL: none */
	/* Writes a line about the session, for every profile. */
	void (*describe)(void *context, uint64_t period_bytes, char *text, size_t text_bytes);
	void *context;
	uint64_t period_bytes;     /* in force */
	struct summary_list ended; /* processes that ended since the last summary; for summary_list_clear() */
	/* Paths of numbered snapshots, owned: the session's client is told them at the end. */
	char *written[HEAP_SOURCE_WRITTEN];
	size_t written_count;
	bool written_more; /* there were too many */
	struct heap_source_dropped
	    dropped[SNAPSHOT_DROPS];    /* processes without a last profile, by the reason */
	struct throttle left_by_others; /* last profiles of processes of other users */
	struct memory_high *cgroups;    /* those whose limit of memory a threshold is about */
	bool cgroup_said;               /* the user was told that a cgroup has no such limit */
};

extern const struct snapshot_source_kind heap_source_kind;

/* Frees what the source owns. */
void heap_source_fini(struct heap_source *source);

#endif
