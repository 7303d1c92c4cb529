/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of /api/v1 as JSON: processes, profiles, timeline. Pure: what there is comes from the caller. */
#ifndef SERVE_API_LIST_H
#define SERVE_API_LIST_H

#include "pprof/text/json.h"
#include "serve/api_point.h"

#include <stdio.h>
#include <sys/types.h>

/* Of all that a process has in use. */
struct api_growth {
	double per_hour, per_hour_error; /* bytes */
};

/* Borrows everything; no string is NULL. */
struct api_process {
	const char *id; /* of its newest profile; "" */
	pid_t pid;      /* 0: of no process that is known, a sum or another tool's */
	const char *program, *name, *service, *host, *session;
	int64_t start_ns;               /* since 1970; 0 unknown */
	bool running, is_sum;           /* is_sum: of several processes, those of a service */
	int64_t rss_bytes;              /* now, or of the newest point; -1 unknown */
	size_t profile_count;           /* that can be looked at */
	const struct api_point *points; /* by time; the newest says what is in use */
	size_t point_count;
	const struct api_growth
	    *growth; /* NULL: it does not grow by more than chance, or that is not known */
};

/* {"processes": [...]}; of a process with many points some. from_files, from_samplers: where they are looked
 * for. */
void api_processes_write(
    FILE *out, const struct api_process *processes, size_t count, bool from_files, bool from_samplers);

struct api_profile {
	const char *id, *program, *name, *service, *host, *cause;
	const char *kind; /* "live", "peak", "delta", or the event it is of */
	pid_t pid;
	int64_t time_ns, duration_ns, bytes;
};

/* {"profiles": [...]} */
void api_profiles_write(FILE *out, const struct api_profile *profiles, size_t count);

/* {"process": {...}, "type", "unit", "points": [...]}: all its points. query: what the points are of. */
void api_timeline_write(FILE *out, const struct api_process *process, const struct api_query *query);

#endif
