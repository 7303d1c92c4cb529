/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time lines of several processes as one: what all of them had in use at each moment, by what was last
 * known of each. Pure.
 */
#ifndef SERVE_TIMELINE_SUM_H
#define SERVE_TIMELINE_SUM_H

#include "serve/api_facts.h"

enum { TIMELINE_SUM_POINTS = 512 };

struct timeline_sum_process {
	int64_t start_ns; /* since 1970; 0: not known */
	bool running;     /* else it ended at its last point */
};

struct timeline_sum_event {
	struct api_point point;
	size_t process; /* whose */
};

struct timeline_sum_input {
	struct timeline_sum_event *events; /* sorted by the call */
	size_t event_count;
	const struct timeline_sum_process *processes;
	size_t process_count;
	int64_t from_ns; /* nothing is known of all of them before */
};

/*
 * Fills in `points`, room for TIMELINE_SUM_POINTS and one more, and how many there are. What falls within a
 * 512th of the time, or a second, is one point. It has an id, "at-NANOSECONDS", if one of its processes wrote
 * a profile then, there is one of each, and none of them ended. Errors are upper limits: processes that were
 * forked have samples in common. `missing` of a point: processes that ran then, and of which nothing was
 * known yet. 0 or -ENOMEM.
 */
int timeline_sum_make(const struct timeline_sum_input *input, struct api_point *points, size_t *count);

#endif
