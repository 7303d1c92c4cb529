/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of events.
 *
 * If the heap of a process is profiled too, its events are written whenever the heap is, under the same
 * number (event_source_take). The events of other processes are written at each interval, on SIGUSR1 to the
 * sampler, by `heaptap snapshot`, and when the process ends.
 *
 * A snapshot is one profile for each event. It covers everything since the process was found. Its sample
 * types are samples/count and cpu/nanoseconds for a clock, EVENT/count for other events, and resident/bytes
 * for faults. Unlike a heap profile it has a duration, its innermost address is exact, and no frame is cut
 * off.
 */
#ifndef SAMPLER_WRITE_EVENT_SOURCE_H
#define SAMPLER_WRITE_EVENT_SOURCE_H

#include "sampler/books/event_registry.h"
#include "sampler/books/registry.h"
#include "sampler/write/scheduler.h"

struct event_source {
	struct snapshot_source base;     /* first */
	struct event_registry *registry; /* borrowed */
	const struct registry *heaps;    /* borrowed: processes whose heap is profiled too; NULL: none */
	uint64_t others;                 /* ended processes except COMMAND */
};

extern const struct snapshot_source_kind event_source_kind;

/* How many ended processes were not shown to the user, because there were too many. Their profiles were
 * written. */
uint64_t event_source_unsaid(const struct event_source *source);

/* A snapshot of the process' heap was taken by that order: takes one of its events too. */
void event_source_take(struct event_source *source, pid_t pid, const struct snapshot_order *order);

#endif
