/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request for /debug/pprof/NAME wants, judged as Go's net/http/pprof judges it
 * (src/net/http/pprof/pprof.go
 * of golang/go): the same parameters, statuses and words. Pure.
 */
#ifndef SERVE_DEBUG_PLAN_H
#define SERVE_DEBUG_PLAN_H

#include "serve/reply.h"
#include "serve/route.h"

#include <stdbool.h>
#include <stdint.h>

enum { DEBUG_SECONDS_MAX = 600, DEBUG_CPU_SECONDS_DEFAULT = 30 };

enum debug_kind {
	DEBUG_INDEX,
	DEBUG_HEAP,       /* the profile as it is; heap and allocs differ in what is shown first */
	DEBUG_DIFFERENCE, /* of two, `seconds` apart */
	DEBUG_DELTA,      /* what was allocated since the same client's last one */
	DEBUG_CPU,        /* for `seconds` */
	DEBUG_CMDLINE,
	DEBUG_SYMBOL,
};

struct debug_plan {
	enum debug_kind kind;
	const char *name;         /* "heap": of the file that the client saves; static */
	const char *default_type; /* NULL: the profile's own */
	bool text;                /* debug=1 */
	uint32_t seconds;         /* 0: at once */
};

/* The plan of a ROUTE_DEBUG or ROUTE_OLD, or false and the reply that says what is wrong. */
bool debug_plan_make(struct debug_plan *plan, const struct route *route, struct reply *reply);

#endif
