/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says in words which memory of a process is not seen. Profiles, the beginning and end of a recording,
 * attaching and the doctor use the same words. Pure, but for the functions that collect the facts.
 */
#ifndef SAMPLER_BOOKS_UNSEEN_H
#define SAMPLER_BOOKS_UNSEEN_H

#include "sampler/inject/runtime.h"
#include "sampler/unwind/maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { UNSEEN_MAX = 8, UNSEEN_WHAT_BYTES = 320, UNSEEN_HOW_BYTES = 240, UNSEEN_FILE_BYTES = 64 };

struct unseen_facts {
	/* ---- the process' files */
	char program[UNSEEN_FILE_BYTES];        /* its file's name; "": unknown */
	bool own_malloc;                        /* the program's malloc comes before heaptap's */
	char calls[UNSEEN_WHAT_BYTES];          /* attached: files whose calls are not seen; "": none */
	bool second_libc;                       /* of plug-ins that dlmopen has loaded */
	char allocator[32];                     /* a function of an allocator inside a file; "": none */
	char allocator_file[UNSEEN_FILE_BYTES]; /* which file that is */
	struct runtime runtime;
	bool runtime_by_malloc; /* its environment makes the interpreter use malloc for all objects */
	bool stripped;          /* the program's file has no symbols: an allocator in it would not be found */
	char debug_link[64], build_id[2 * 20 + 1]; /* to find the program's debug file; "": none */

	/* ---- its memory, in bytes */
	bool measured;   /* the next three are known */
	double resident; /* all */
	double others;   /* private anonymous memory that is not known to be malloc's */
	double heap;     /* in use */
	bool with_mmap;

	/* ---- names of its functions */
	double nameless, named; /* allocated below an interpreter that names no functions, and in all */
	bool names_unknown;     /* no sample was taken yet, and the interpreter names no functions */
	bool asks;              /* a JVM that catches SIGQUIT */
};

enum unseen_reason {
	UNSEEN_ALLOCATOR, /* an allocator inside of the program or of a library */
	UNSEEN_POOL,      /* memory that an interpreter maps for itself */
	UNSEEN_OTHERS,    /* other memory that is not malloc's */
	UNSEEN_NAMES,
	UNSEEN_CALLS, /* attached: calls that cannot be redirected */
	UNSEEN_SECOND_LIBC,
	UNSEEN_STRIPPED,
};

/* The most bytes first. */
struct unseen {
	struct unseen_text {
		enum unseen_reason reason;
		double bytes;                 /* 0: unknown */
		char what[UNSEEN_WHAT_BYTES]; /* without control characters */
		char how[UNSEEN_HOW_BYTES];   /* how to see that memory; "": there is no way */
	} texts[UNSEEN_MAX];
	size_t count;
};

/* Writes a text for each reason that the facts give. */
void unseen_describe(struct unseen *unseen, const struct unseen_facts *facts);

/* Adds a text, in the order of bytes. */
void unseen_add(
    struct unseen *unseen, enum unseen_reason reason, double bytes, const char *what, const char *how);

/* "not seen: WHAT; HOW": a comment of a profile (pprof/model/origin.h), and a line. Returns `text`. */
enum { UNSEEN_LINE_BYTES = UNSEEN_WHAT_BYTES + UNSEEN_HOW_BYTES + 16 };
const char *unseen_line(const struct unseen_text *one, char text[UNSEEN_LINE_BYTES]);

/* Adds how many of the bytes in use have a stack of the program's file alone, whose functions have no
 * names. */
void unseen_add_stripped(
    struct unseen *unseen, const struct unseen_facts *facts, double nameless_bytes, double bytes);

/* Whether the process may have allocated more than bound_bytes by an allocator that is not seen. If so, a
 * profile without samples does not mean that nothing was allocated. */
bool unseen_may_hide(const struct unseen_facts *facts, double bound_bytes);

/*
 * ---- the facts (unseen_facts.c)
 *
 * What the mapped files of a process hold, by their symbols, and whether its interpreter names its functions.
 * The symbols of a file are kept for the next process that has the file mapped, and for the next snapshot.
 * Not thread-safe.
 */

/* Fills in the facts about files. program: path of the executable; "" if it is unknown. */
void unseen_facts_look(struct unseen_facts *facts, const struct maps *maps, const char *program);

/* Where in the file an interpreter calls the functions of its language. False if the file is no
 * interpreter, or makes their code at run time. */
bool unseen_facts_runtime_entry(struct module *module, uint64_t *start, uint64_t *end);

/* Fills in the facts about a running process: its files, whether it names its functions, whether it
 * catches SIGQUIT; nothing about its memory. Returns 0 or -errno. */
int unseen_facts_look_at_process(struct unseen_facts *facts, struct modules *modules, pid_t pid);

/* Whether the process' environment makes its interpreter use malloc for all objects. */
bool unseen_facts_runtime_by_malloc(pid_t pid, enum runtime_kind kind);

/* Whether the process' JVM answers SIGQUIT, so that jcmd may ask it. Without a handler (-Xrs) the signal
 * would end the JVM. */
bool unseen_facts_asks(pid_t pid);

#endif
