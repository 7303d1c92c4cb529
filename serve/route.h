/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request is about, from its first line: pure, of bytes that anybody may send.
 *
 *     /debug/pprof/NAME                   of the one process that is watched
 *     /pid/4711/debug/pprof/NAME          of that one
 *     /service/NAME/debug/pprof/NAME      of all of a service
 *     /pprof/NAME                         as gperftools' clients ask
 *     /api/v1/NAME  /metrics  /sd  /healthz
 *     /  /NAME                            the page, and its parts
 *
 * A path with an empty, "." or ".." part, with a control character or with invalid UTF-8 leads nowhere. No
 * part of a path is ever looked up in a file system.
 */
#ifndef SERVE_ROUTE_H
#define SERVE_ROUTE_H

#include "serve/parameters.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { ROUTE_TARGET_BYTES = 8192, ROUTE_SERVICE_BYTES = 129 };

enum route_kind {
	ROUTE_NONE, /* nothing is there */
	ROUTE_DEBUG,
	ROUTE_DEBUG_BARE, /* /debug/pprof without its last slash: Go redirects */
	ROUTE_OLD,        /* /pprof/NAME */
	ROUTE_API,
	ROUTE_METRICS,
	ROUTE_DISCOVERY,
	ROUTE_HEALTH,
	ROUTE_PAGE,
};

/* Which processes: by the path, or by pid= and service=. */
enum route_scope { ROUTE_ANY, ROUTE_PID, ROUTE_SERVICE };

struct route {
	enum route_kind kind;
	enum route_scope scope;
	pid_t pid;
	char service[ROUTE_SERVICE_BYTES];
	const char *name; /* NAME of the above; "" is an index; in `path` */
	char *path;       /* decoded */
	struct parameters parameters;
	char *query; /* as it came; "" if there is none. /symbol reads it by itself */
};

/* target: "/path?query", or "http://host/path?query". 0, -ENOMEM, or -EINVAL if it is none. On 0 the caller
 * calls route_fini. */
int route_parse(struct route *route, const char *target);
void route_fini(struct route *route);

/* Which methods it has: "GET, HEAD" or "GET, HEAD, POST". */
const char *route_methods(const struct route *route);

/* May it be asked for without a token? True of what holds no data: the empty page, and whether we live. */
bool route_is_open(const struct route *route);

#endif
