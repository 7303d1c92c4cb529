/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/peak.h"

#include "pprof/text/clock.h"
#include "sampler/write/heap_snapshot.h"
#include "sampler/write/scheduler.h"

#include <stdlib.h>
#include <string.h>

/* Half of the least `days` of a store. */
static const uint64_t old_ns = 12 * 3600 * UINT64_C(1000000000);

/* Does the file need a new name? Only in a store, which removes files by the time in their names. */
static bool is_old(const struct scheduler *scheduler, const struct peak_file *file)
{
	return file->path && scheduler_setup(scheduler)->reserve &&
	    clock_now_ns() - file->reserved_ns >= old_ns;
}

/* Returns a copy, because the next snapshot may make a new path. NULL if no path could be made, which was
 * logged. */
static char *path_of(
    const struct scheduler *scheduler, const struct target *target, struct peak_file *file, bool old)
{
	if (!file->path || old) {
		char *path = scheduler_reserve_beside(scheduler, target, "peak");

		if (path) { /* else the old path is used */
			free(file->path);
			file->path = path;
			file->reserved_ns = clock_now_ns();
		}
	}
	return file->path ? strdup(file->path) : NULL;
}

void peak_add(const struct scheduler *scheduler, struct heap_snapshot *snapshot,
    struct snapshot_series *series, const struct live_scan *scan)
{
	struct peak_file *file = &series->heap.peak;
	const bool old = is_old(scheduler, file);

	if (old)
		file->order = 0; /* no file has the new name yet */
	if (!scan->peak_order ||
	    (snapshot->base.kind == SNAPSHOT_NUMBERED && scan->peak_order == file->order) ||
	    heap_view_make(&snapshot->peak, HEAP_VIEW_PEAK, snapshot->process->heap, scan) != 0)
		return;
	snapshot->peak_order = scan->peak_order;
	snapshot->peak_path = path_of(scheduler, series->target, file, old);
	snapshot->peak_unix_ns = snapshot->base.unix_ns - (int64_t)(scan->now_ns - scan->peak_ns);
	snapshot->peak_missing = scan->peak_missing;
}

void peak_written(struct snapshot_series *series, const struct heap_snapshot *snapshot)
{
	if (snapshot->peak_path)
		series->heap.peak.order = snapshot->peak_order;
}
