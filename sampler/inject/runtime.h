/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreters whose objects and functions heaptap does not see by itself, with a hint for each: the only
 * table of these hints. Pure. */
#ifndef SAMPLER_INJECT_RUNTIME_H
#define SAMPLER_INJECT_RUNTIME_H

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
	/* The code of the file that calls the interpreted functions; 0 and 0: unknown. */
	uint64_t entry_start, entry_end;
};

struct runtime_symbol {
	const char *name;
	bool exported;
	uint64_t start, bytes;
};

/* Note what the file has: a function, the name of a needed library, or Go's section. */
void runtime_note_symbol(struct runtime *runtime, const struct runtime_symbol *symbol);
void runtime_note_library(struct runtime *runtime, const char *name);
#define RUNTIME_GO_SECTION ".go.buildinfo"
void runtime_note_go_section(struct runtime *runtime);

/* The symbols that runtime_note_symbol() knows, by number; NULL beyond the last. */
const char *runtime_symbol(size_t index);

/* "python's own pool": a name for the memory that the interpreter maps for itself. NULL if it uses only
 * malloc. */
const char *runtime_memory(enum runtime_kind kind);
/* How to see what is in this memory. asks: a JVM runs that may be asked, because it catches SIGQUIT; with
 * -Xrs, SIGQUIT ends it. */
const char *runtime_memory_remedy(enum runtime_kind kind, bool asks);
/* The same if --mmap is given already. NULL if --mmap shows the functions that are to blame. */
const char *runtime_memory_remedy_beside_mmap(enum runtime_kind kind, bool asks);
/* Can a program hold any amount of this memory and never call malloc? */
bool runtime_avoids_malloc(enum runtime_kind kind);
/* Does an environment (variables that end in NUL, as in /proc/PID/environ) make the interpreter use malloc
 * instead? */
bool runtime_memory_is_off(enum runtime_kind kind, const char *environment, size_t bytes);

/* "Python": the language whose functions have no names. NULL if they have names. */
const char *runtime_language(enum runtime_kind kind);
/* How the functions get names, or what shows them. "" if nothing is known. */
const char *runtime_names_remedy(const struct runtime *runtime, bool asks);

#endif
