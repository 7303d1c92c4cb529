/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of events.
 *
 * If a process is also profiled for its heap, its events are written whenever its heap is, under the same
 * number (event_source_take). All others follow the same rules alone: interval, SIGUSR1 to the sampler,
 * `heaptap snapshot`, the end.
 */
#ifndef SAMPLER_SNAPSHOT_EVENT_SOURCE_H
#define SAMPLER_SNAPSHOT_EVENT_SOURCE_H

#include "sampler/events/event_registry.h"
#include "sampler/heap/registry.h"
#include "sampler/snapshot/scheduler.h"

struct event_source {
	struct snapshot_source base;     /* first */
	struct event_registry *registry; /* borrowed, as the next is */
	const struct registry *heaps;    /* those whose heap is profiled too; NULL: nobody's */
};

extern const struct snapshot_source_kind event_source_kind;

/* A snapshot of a process' heap was taken under that name. */
void event_source_take(struct event_source *source, pid_t pid, const char *name, const char *cause);

#endif
