/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first line of a request, taken apart. Pure: anybody may send any bytes.
 *
 *     /PATH                   about the one process that is profiled, or about those of pid= or service=
 *     /pid/4711/PATH          about that process
 *     /service/NAME/PATH      about all processes of that service
 *
 * The PATH is looked up in endpoint_list.h. A path leads nowhere if it has an empty, "." or ".." part, a
 * control character or invalid UTF-8. No part of a path is ever looked up in a file system.
 */
#ifndef SERVE_ROUTE_H
#define SERVE_ROUTE_H

#include "serve/parameters.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { ROUTE_TARGET_BYTES = 8192, ROUTE_SERVICE_BYTES = 129 };

struct route {
	enum route_scope { ROUTE_ANY, ROUTE_PID, ROUTE_SERVICE } scope; /* which processes are meant */
	pid_t pid;
	char service[ROUTE_SERVICE_BYTES];
	bool is_below_process; /* the path says the scope, not a parameter */
	char *path;            /* decoded */
	const char *below;     /* PATH of the above, in `path`; "" if the path leads nowhere */
	struct parameters parameters;
	char *query; /* as it came; "" if there is none. /debug/pprof/symbol reads it by itself */
};

/* target: "/path?query", or "http://host/path?query". 0, -ENOMEM, or -EINVAL if the target has neither form.
 * On 0 the caller calls route_fini. */
int route_parse(struct route *route, const char *target);
void route_fini(struct route *route);

#endif
