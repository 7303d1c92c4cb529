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
#include <stdio.h>

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

/*
 * Makes the difference of two profiles of one process: `first` is the earlier one. All values are those of
 * `last` minus those of `first`, as Go's handlers answer seconds=N. With `totals_only` the result is what
 * came since `first` (pprof/analysis/since.h), and what is in use stays that of `last`. The time is that of
 * `last`, the duration what lies between the two.
 *
 * With `totals_only`, first may be NULL: then nothing was allocated before; with `unknown` it is not known
 * how much was. 0 with *out the caller's; -ENOMEM, -EOVERFLOW, -ENODATA.
 */
int debug_answer_difference(
    struct profile *first, struct profile *last, bool totals_only, bool unknown, struct profile **out);

/* inputs: one for each process, and at least one. query: of DEBUG_SYMBOL. */
void debug_answer_make(struct reply *reply, const struct debug_plan *plan, const struct debug_input *inputs,
    size_t count, const char *query);

/* The index page. title: what the profiles are of; without characters that HTML escapes. */
void debug_answer_index(struct reply *reply, const char *title);

/* Encodes and compresses a profile. 0 or -errno. */
int debug_answer_encode(const struct profile *profile, struct blob **blob);

/* A body that clients save under that name. */
void debug_answer_file(struct reply *reply, const char *name, struct blob *body);

/*
 * ---- debug_answer_text.c: a profile as text: for debug=1, and for /debug/pprof/symbol. Pure.
 *
 * A heap profile has the format of heapprofile, which pprof, Go's tools and gperftools' pprof read. The names
 * of functions are comments in it, as Go writes them.
 *
 *     heap profile: 3: 300 [5: 500] @ heapprofile
 *     3: 300 [5: 500] @ 0x55d0c0ffee 0x55d0c0ff00
 *     #	0x55d0c0ffed	main+0x0	/src/main.c:12
 *
 *     MAPPED_LIBRARIES:
 *     55d0c0000000-55d0c0010000 r-xp 00001000 00:00 0 /usr/bin/program
 */

/* False: it is no heap profile. */
bool debug_answer_write_heap(FILE *out, const struct profile *profile);

/* Any other profile: its types, and each stack with its values. */
void debug_answer_write_any(FILE *out, const struct profile *profile);

/* The names of addresses. query: "0x4005d0+0x4005e0". Writes "num_symbols: 1", and a line for each address
 * that the profile knows, as Go's handler does. profile NULL: no address is known. 0 or -ENOMEM. */
int debug_answer_write_symbols(FILE *out, const char *query, const struct profile *profile);

#endif
