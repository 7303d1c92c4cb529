/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request for /debug/pprof/NAME wants. The parameters, statuses and words are those of Go's
 * net/http/pprof (src/net/http/pprof/pprof.go of golang/go). Pure.
 */
#ifndef SERVE_DEBUG_PLAN_H
#define SERVE_DEBUG_PLAN_H

#include "serve/parameters.h"
#include "serve/reply.h"

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

/* name: NAME of the above, "" for the index. False: the reply says what is wrong. */
bool debug_plan_make(
    struct debug_plan *plan, const char *name, const struct parameters *parameters, struct reply *reply);

#endif
