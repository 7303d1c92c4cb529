/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a process' memory is not seen, in words: the same in profiles, when recording begins and ends, when
 * heaptap attaches, and from the doctor. Pure.
 */
#ifndef SAMPLER_HEAP_UNSEEN_H
#define SAMPLER_HEAP_UNSEEN_H

#include "sampler/loader/runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNSEEN_MAX = 8, UNSEEN_WHAT_BYTES = 320, UNSEEN_HOW_BYTES = 240, UNSEEN_FILE_BYTES = 64 };

struct unseen_facts {
	/* ---- of its files (inside.h) */
	char program[UNSEEN_FILE_BYTES];        /* its file's name; "": unknown */
	bool own_malloc;                        /* the program's malloc comes before heaptap's */
	char calls[UNSEEN_WHAT_BYTES];          /* attached: files whose calls are not seen; "": none */
	char allocator[32];                     /* a function of an allocator inside a file; "": none */
	char allocator_file[UNSEEN_FILE_BYTES]; /* which file that is */
	struct runtime runtime;
	bool runtime_by_malloc; /* its environment makes the interpreter use malloc for all */
	bool stripped;          /* the program's file: an allocator inside would not be found */
	char debug_link[64], build_id[2 * 20 + 1]; /* by which its debug file is looked for; "": none */

	/* ---- of its memory, in bytes */
	bool measured;   /* the next three are known */
	double resident; /* all */
	double others;   /* private anonymous memory that is not known to be malloc's */
	double heap;     /* in use */
	bool with_mmap;

	/* ---- of names */
	double nameless, named; /* allocated below an interpreter that names no functions, and in all */
	bool names_unknown;     /* nothing has been sampled yet, and the interpreter names nothing */
	bool asks;              /* a JVM that catches SIGQUIT */
};

enum unseen_reason {
	UNSEEN_ALLOCATOR, /* one inside of the program, or of a library */
	UNSEEN_POOL,      /* what an interpreter maps for itself */
	UNSEEN_OTHERS,    /* other memory that is not malloc's */
	UNSEEN_NAMES,
	UNSEEN_CALLS, /* attached: calls that cannot be redirected */
	UNSEEN_STRIPPED,
};

/* The most bytes first. */
struct unseen {
	struct unseen_text {
		enum unseen_reason reason;
		double bytes;                 /* 0: unknown */
		char what[UNSEEN_WHAT_BYTES]; /* without what could move a cursor */
		char how[UNSEEN_HOW_BYTES];   /* to see it; "": there is no way */
	} texts[UNSEEN_MAX];
	size_t count;
};

/* Fills in all that follows from the facts. */
void unseen_describe(struct unseen *unseen, const struct unseen_facts *facts);

/* Adds another, where its bytes put it. */
void unseen_add(
    struct unseen *unseen, enum unseen_reason reason, double bytes, const char *what, const char *how);

/* "not seen: WHAT; HOW": a comment of a profile (pprof/profile/origin.h), and a line. Returns `text`. */
enum { UNSEEN_LINE_BYTES = UNSEEN_WHAT_BYTES + UNSEEN_HOW_BYTES + 16 };
const char *unseen_line(const struct unseen_text *one, char text[UNSEEN_LINE_BYTES]);

/* Adds that so many of the bytes in use lead through the program's file alone, whose functions have no names.
 */
void unseen_add_stripped(
    struct unseen *unseen, const struct unseen_facts *facts, double nameless_bytes, double bytes);

/* May it have allocated much by another allocator, of which nothing is seen? Then that nothing was sampled
 * says nothing. bound_bytes: what is much. */
bool unseen_may_hide(const struct unseen_facts *facts, double bound_bytes);

#endif
