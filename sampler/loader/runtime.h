/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreters whose objects and functions heaptap does not see by itself, and what to do about each: the
 * one table of these hints. Pure. */
#ifndef SAMPLER_LOADER_RUNTIME_H
#define SAMPLER_LOADER_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum runtime_kind {
	RUNTIME_NONE,
	RUNTIME_PYTHON,
	RUNTIME_NODE,
	RUNTIME_JVM,
	RUNTIME_GO,
	RUNTIME_PHP,
	RUNTIME_ERLANG,
	RUNTIME_RUBY,
	RUNTIME_PERL,
	RUNTIME_LUA,
	RUNTIME_TCL,
	RUNTIME_KINDS
};

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

/* What a function that a file defines, the name of a library, or a section tells of the interpreter. */
void runtime_note_symbol(struct runtime *runtime, const struct runtime_symbol *symbol);
void runtime_note_library(struct runtime *runtime, const char *name);
#define RUNTIME_GO_SECTION ".go.buildinfo"
void runtime_note_go_section(struct runtime *runtime);

/* The symbols that runtime_note_symbol() knows; NULL beyond the last. */
const char *runtime_symbol(size_t index);

/* "python's own pool": whose memory it is that the interpreter maps for itself. NULL: all is malloc's. */
const char *runtime_memory(enum runtime_kind kind);
/* How to see what is in it. asks: a running JVM that may be asked for it: it catches SIGQUIT, which ends it
 * otherwise (-Xrs). */
const char *runtime_memory_remedy(enum runtime_kind kind, bool asks);
/* The same where --mmap is given already. NULL: it shows the functions that are to blame. */
const char *runtime_memory_remedy_beside_mmap(enum runtime_kind kind, bool asks);
/* May a program hold any amount of that memory, and never call malloc? */
bool runtime_avoids_malloc(enum runtime_kind kind);
/* Does an environment (variables that end in 0, as in /proc/PID/environ) make it use malloc instead? */
bool runtime_memory_is_off(enum runtime_kind kind, const char *environment, size_t bytes);

/* "Python": whose functions have no names. NULL: they have. */
const char *runtime_language(enum runtime_kind kind);
/* How they get names, or what shows them. "": nothing is known. */
const char *runtime_names_remedy(const struct runtime *runtime, bool asks);

#endif
