/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request for /debug/pprof/NAME, made of profiles. Pure: for the thread of jobs.h. */
#ifndef SERVE_DEBUG_ANSWER_H
#define SERVE_DEBUG_ANSWER_H

#include "serve/blob.h"
#include "serve/debug_plan.h"

struct debug_input {
	struct blob *first; /* the one before; NULL: there is none */
	struct blob *last;
	bool unknown; /* DEBUG_DELTA: what was allocated before is not known */
};

/* inputs: one of each process, at least one. query: of DEBUG_SYMBOL. */
void debug_answer_make(struct reply *reply, const struct debug_plan *plan, const struct debug_input *inputs,
    size_t count, const char *query);

/* The index page. title: what it is of; no character of HTML. */
void debug_answer_index(struct reply *reply, const char *title);

/* Gzipped, as it is sent. 0 or -errno. */
struct profile;
int debug_answer_encode(const struct profile *profile, struct blob **blob);

/* A body that clients save under that name. */
void debug_answer_file(struct reply *reply, const char *name, struct blob *body);

#endif
