/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of /api/v1: processes, profiles, and the points of a time line. */
#ifndef SERVE_API_LISTS_H
#define SERVE_API_LISTS_H

#include "pprof/text/json.h"
#include "serve/api_facts.h"
#include "serve/catalog.h"
#include "serve/request.h"

#include <stdio.h>
#include <sys/types.h>

/* How fast all that a process has in use grows. */
struct api_growth {
	double per_hour, per_hour_error; /* bytes */
};

/* Borrows everything; no string is NULL. */
struct api_process {
	const char *id; /* its newest profile's; "" if there is none */
	pid_t pid;      /* 0: a sum, or another tool's profile */
	const char *program, *name, *service, *host, *session;
	int64_t start_ns;               /* since 1970; 0 unknown */
	bool running, is_sum;           /* is_sum: of several processes, those of a service */
	int64_t rss_bytes;              /* now, or of the newest point; -1 unknown */
	size_t profile_count;           /* of its profiles */
	const struct api_point *points; /* by time; the newest says what is in use */
	size_t point_count;
	const struct api_growth *growth; /* NULL: not known, or no more than chance */
};

/* Pure: {"processes": [...]}. A process with many points has some of them. from_files, from_samplers: where
 * the server looks for processes. */
void api_lists_write_processes(
    FILE *out, const struct api_process *processes, size_t count, bool from_files, bool from_samplers);

/* Pure: {"process": {...}, "type", "unit", "points": [...]}, with all points. query: what the points show. */
void api_lists_write_timeline(FILE *out, const struct api_process *process, const struct api_query *query);

/* Points of what lists have said of a process over time: at most `most`, or all with 0. The caller frees
 * them. NULL: no memory. */
struct api_point *api_lists_points(const struct catalog_process *process, size_t *count, size_t most);

/* The id of a process' newest state, "" if there is none. A process that runs has a state that is made when
 * a client asks for it. */
void api_lists_id(const struct catalog_process *process, char id[TASK_ID_BYTES]);

/*
 * ---- api_lists_timeline.c: the sum that /api/v1/timeline shows of a service
 *
 * It is what all processes of the service had in use at each moment. Between two points of a process, the
 * earlier one counts. Pure.
 */
enum { API_SUM_POINTS = 512 };

struct api_sum_process {
	int64_t start_ns; /* since 1970; 0: not known */
	bool running;     /* false: it ended at its last point */
};

struct api_sum_event {
	struct api_point point;
	size_t process; /* the number of its process */
};

struct api_sum_input {
	struct api_sum_event *events; /* sorted by the call */
	size_t event_count;
	const struct api_sum_process *processes;
	size_t process_count;
	int64_t from_ns; /* before this time some processes are not known */
};

/*
 * Fills in `points`, with room for API_SUM_POINTS and one more, and their number. Points that lie within
 * a 512th of the time, or within a second, become one point.
 *
 * A point has an id, "at-NANOSECONDS", if a process wrote a profile then, each process has written one, and
 * no process ended with the point. `missing` counts processes that ran then, but of which nothing was known
 * yet. Errors are upper limits, since processes that were forked have samples in common. 0 or -ENOMEM.
 */
int api_lists_sum(const struct api_sum_input *input, struct api_point *points, size_t *count);

#endif
