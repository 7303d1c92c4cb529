/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time line of one process: points at regular intervals, written as JSON lines.
 *
 * When there are TIMELINE_POINTS points, every second one is dropped and the interval doubles. So its length
 * is bounded and it always covers the process' whole life: a point per second for the first quarter of an
 * hour, one per half a minute after ten hours.
 */
#ifndef SAMPLER_SNAPSHOT_TIMELINE_H
#define SAMPLER_SNAPSHOT_TIMELINE_H

#include "sampler/region/region.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TIMELINE_POINTS = 1024 };

struct timeline_point {
	uint64_t time_ns; /* monotonic */
	/* estimates; allocated: since the process' start */
	double inuse_bytes, inuse_objects, allocated_bytes;
	uint64_t rss_bytes, swap_bytes; /* UINT64_MAX: unknown (the process had ended) */
	uint32_t threads;
	uint64_t samples, lost; /* so far; lost: without a stack */
};

struct timeline {
	struct timeline_point *points; /* made with the first one */
	size_t count;
	uint64_t step_ns, due_ns;
};

/* Notes a point if one is due. pid 0: the process has ended, and only the books are noted. `lost`: samples
 * without a stack so far. True if a point was noted. */
bool timeline_note(struct timeline *timeline, const struct region_place *place, pid_t pid, uint64_t lost,
    uint64_t now_ns, bool in_any_case);
void timeline_fini(struct timeline *timeline);

/* The JSON lines, for free(). unix_offset_ns: what to add to get from monotonic time to that of the epoch.
 * NULL: out of memory. */
char *timeline_print(const struct timeline *timeline, int64_t unix_offset_ns, size_t *bytes);

#endif
