/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/timeline, and the sum that it shows of a service: what all processes of the service had in use at
 * each moment. Between two points of a process, the earlier one counts. The sum is pure.
 */
#ifndef SERVE_API_TIMELINE_H
#define SERVE_API_TIMELINE_H

#include "serve/api_facts.h"

enum { API_TIMELINE_POINTS = 512 };

struct api_timeline_process {
	int64_t start_ns; /* since 1970; 0: not known */
	bool running;     /* false: it ended at its last point */
};

struct api_timeline_event {
	struct api_point point;
	size_t process; /* the number of its process */
};

struct api_timeline_input {
	struct api_timeline_event *events; /* sorted by the call */
	size_t event_count;
	const struct api_timeline_process *processes;
	size_t process_count;
	int64_t from_ns; /* before this time some processes are not known */
};

/*
 * Fills in `points`, with room for API_TIMELINE_POINTS and one more, and their number. Points that lie within
 * a 512th of the time, or within a second, become one point.
 *
 * A point has an id, "at-NANOSECONDS", if a process wrote a profile then, each process has written one, and
 * no process ended with the point. `missing` counts processes that ran then, but of which nothing was known
 * yet. Errors are upper limits, since processes that were forked have samples in common. 0 or -ENOMEM.
 */
int api_timeline_sum(const struct api_timeline_input *input, struct api_point *points, size_t *count);

#endif
