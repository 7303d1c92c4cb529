/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreters whose objects and functions heaptap does not see by itself, and what to do about each: the
 * one table of these hints. Pure. */
#ifndef SAMPLER_LOADER_RUNTIME_H
#define SAMPLER_LOADER_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum runtime_kind { RUNTIME_NONE, RUNTIME_PYTHON, RUNTIME_NODE, RUNTIME_JVM, RUNTIME_KINDS };

struct runtime {
	enum runtime_kind kind;
	bool python_names; /* Python 3.12 or later: it can name its functions */
	/* Through which code of the file its functions are called; 0 and 0: unknown. */
	uint64_t entry_start, entry_end;
};

struct runtime_symbol {
	const char *name;
	bool exported;
	uint64_t start, bytes;
};

/* What a function that a file defines, or the name of a library, tells of the interpreter. */
void runtime_note_symbol(struct runtime *runtime, const struct runtime_symbol *symbol);
void runtime_note_library(struct runtime *runtime, const char *name);

/* The symbols that runtime_note_symbol() knows; NULL beyond the last. */
const char *runtime_symbol(size_t index);

/* "python's own pool": whose memory it is that the interpreter maps for itself. */
const char *runtime_memory(enum runtime_kind kind);
/* How to see what is in it. asks: a running JVM that may be asked for it: it catches SIGQUIT, which ends it
 * otherwise (-Xrs). */
const char *runtime_memory_remedy(enum runtime_kind kind, bool asks);
/* Does --mmap show who makes that memory grow, by the functions that are to blame? */
bool runtime_memory_by_mmap(enum runtime_kind kind);

/* "Python": whose functions have no names. */
const char *runtime_language(enum runtime_kind kind);
/* How they get names. */
const char *runtime_names_remedy(const struct runtime *runtime, bool asks);

#endif
