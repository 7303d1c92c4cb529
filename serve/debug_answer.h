/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request for /debug/pprof/NAME wants, and the answer that is made of profiles. The parameters,
 * statuses and words are those of Go's net/http/pprof (src/net/http/pprof/pprof.go of golang/go). Pure: the
 * answer is made in the thread of jobs.h.
 */
#ifndef SERVE_DEBUG_ANSWER_H
#define SERVE_DEBUG_ANSWER_H

#include "serve/blob.h"
#include "serve/reply.h"
#include "serve/route.h"

#include <stdbool.h>
#include <stdint.h>

enum { DEBUG_SECONDS_MAX = 600, DEBUG_CPU_SECONDS_DEFAULT = 30 };

enum debug_kind {
	DEBUG_INDEX,
	DEBUG_HEAP,       /* the profile as it is; heap and allocs differ in what readers show first */
	DEBUG_DIFFERENCE, /* between two profiles, `seconds` apart */
	DEBUG_DELTA,      /* what was allocated since the same client's last request */
	DEBUG_CPU,        /* for `seconds` */
	DEBUG_CMDLINE,
	DEBUG_SYMBOL,
};

struct debug_plan {
	enum debug_kind kind;
	const char *name;         /* "heap": of the file that the client saves; static */
	const char *default_type; /* NULL: the profile's own */
	bool text;                /* debug=1 */
	uint32_t seconds;         /* 0: the answer is made at once */
};

/* name: NAME of the above, "" for the index. False: the reply says what is wrong. */
bool debug_answer_plan(
    struct debug_plan *plan, const char *name, const struct parameters *parameters, struct reply *reply);

/* The profiles of one process. */
struct debug_input {
	struct blob *first; /* the earlier one; NULL: there is none */
	struct blob *last;
	bool unknown; /* DEBUG_DELTA: what was allocated before is not known */
};

/* inputs: one for each process, and at least one. query: of DEBUG_SYMBOL. */
void debug_answer_make(struct reply *reply, const struct debug_plan *plan, const struct debug_input *inputs,
    size_t count, const char *query);

/* The index page. title: what the profiles are of; without characters that HTML escapes. */
void debug_answer_index(struct reply *reply, const char *title);

/* Encodes and compresses a profile. 0 or -errno. */
int debug_answer_encode(const struct profile *profile, struct blob **blob);

/* A body that clients save under that name. */
void debug_answer_file(struct reply *reply, const char *name, struct blob *body);

#endif
