/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first line of a request, taken apart. Pure: anybody may send any bytes.
 *
 *     /PATH?seconds=5&debug=1   about the one process that is profiled, or about those of pid= or service=
 *     /pid/4711/PATH            about that process
 *     /service/NAME/PATH        about all processes of that service
 *
 * "http://HOST/PATH" is the same path, and HOST then counts instead of the header Host (RFC 9112, 3.2.2).
 *
 * The PATH is looked up in endpoint_list.h. A path leads nowhere if it has an empty, "." or ".." part, a
 * control character or invalid UTF-8. No part of a path is ever looked up in a file system.
 *
 * Parameters are read as Go's net/url reads them, since clients were written for Go's handlers: '&'
 * separates, '+' is a space, "%XX" a byte. A part with a wrong escape or with ';' is left out. If a name is
 * there several times, the first counts. A NUL byte becomes U+FFFD. Values need not be valid UTF-8.
 */
#ifndef SERVE_ROUTE_H
#define SERVE_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ROUTE_TARGET_BYTES = 8192, ROUTE_SERVICE_BYTES = 129 };

enum { PARAMETERS_MAX = 64 /* parameters behind these are left out */ };

struct parameters {
	struct parameter {
		const char *name, *value;
	} items[PARAMETERS_MAX];
	size_t count;
	char *text; /* has all strings */
};

struct route {
	enum route_scope { ROUTE_ANY, ROUTE_PID, ROUTE_SERVICE } scope; /* which processes are meant */
	pid_t pid;
	char service[ROUTE_SERVICE_BYTES];
	bool is_below_process; /* the path says the scope, not a parameter */
	char *host;            /* of "http://HOST/PATH", as it came; NULL: the target is a path alone */
	char *path;            /* decoded */
	const char *below;     /* PATH of the above, in `path`; "" if the path leads nowhere */
	struct parameters parameters;
	char *query; /* as it came; "" if there is none. /debug/pprof/symbol reads it by itself */
};

/* target: "/path?query", or "http://host/path?query". 0, -ENOMEM, or -EINVAL if the target has neither form.
 * On 0 the caller calls route_fini. */
int route_parse(struct route *route, const char *target);
void route_fini(struct route *route);

/* query: without its '?'; NULL: none. 0 or -ENOMEM; on 0 the caller calls parameters_fini. */
int parameters_parse(struct parameters *parameters, const char *query);
void parameters_fini(struct parameters *parameters);

/* NULL: not given. */
const char *parameters_get(const struct parameters *parameters, const char *name);

/* As Go's strconv.ParseInt(text, 10, 64): 0; -EINVAL with 0, or -ERANGE with the nearest number. */
int parameters_integer(const char *text, int64_t *number);

/* As Go's handlers read debug= and gc=: the number, or 0 if there is none. */
int64_t parameters_integer_or_0(const struct parameters *parameters, const char *name);

#endif
