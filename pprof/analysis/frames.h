/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of traces: each function that is shown, or each source line of one, once, numbered from 0. Names
 * are as printed: anonymized if asked for, and never empty.
 */
#ifndef PPROF_ANALYSIS_FRAMES_H
#define PPROF_ANALYSIS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/table/index.h"
#include "pprof/table/intern.h"

struct filter;

/*
 * What part of a program a frame is from: the user's own code, a library below it, or the allocator. Decided
 * by its name and by the file its code is in, so that the same frame is the same in every profile.
 *
 * A role never changes a number: it decides which frame of a stack names the stack (row_label.h).
 */
enum frame_role {
	FRAME_OWN, /* everything that is none of the others */
	/* a function of a script or of bytecode. The program that made machine code of the function has named
	 * it: Python's py::f:FILE, V8's JS:^f FILE, Java's names */
	FRAME_SCRIPT,
	/* the same, in the library of the language or in an installed package (site-packages, node_modules)
	 * */
	FRAME_SCRIPT_LIBRARY,
	/* C++: std::, __gnu_cxx::, __cxxabiv1::; Rust: std::, core::, alloc::, hashbrown::; the files of
	 * libc, libstdc++, libc++, libgcc, of allocators and of the dynamic loader; _start; code that V8 and
	 * the JVM make for themselves */
	FRAME_LIBRARY,
	/* malloc and its family with any prefix, and wrappers that are named after it (xmalloc, g_malloc0,
	 * zmalloc_usable, _PyObject_Calloc); operator new; Rust's __rust_alloc; [mmap] */
	FRAME_ALLOCATOR,
	/* a function with a name that speaks of allocating: a wrapper if several functions call it
	 * (row_label.h), else FRAME_OWN */
	FRAME_ALLOCATES,
	/* no function is known: [libfoo.so], libfoo.so+0x1a2b, [jit], [guessed] */
	FRAME_UNNAMED,
	/* no function is known, and the file is the program's own: server+0x3a10 */
	FRAME_UNNAMED_OWN,
};

/* name as in the profile, brief its short form (short_name.h); module: path of the file, "" unknown. */
enum frame_role frames_role(const char *name, const char *brief, const char *module);

/* Strings live as long as the table. */
struct frames_row {
	const char *name;   /* never empty: "[libfoo.so]" where no function is known */
	const char *label;  /* what is printed for it: the name or its short form */
	const char *file;   /* "" unknown */
	const char *module; /* path of the file the code is in, "" unknown */
	int64_t line;       /* 0 if unknown, or if functions are distinguished by name only */
	unsigned int marks; /* filter_frame() */
	uint8_t role;       /* enum frame_role */
};

/* Which names are short forms (short_name.h). */
enum frames_names {
	FRAMES_FULL,   /* none: name and label are as in the profile */
	FRAMES_LABELS, /* the label */
	FRAMES_SHORT,  /* label and name: functions that differ only in template arguments are one frame */
};

struct frames {
	bool lines;     /* distinguish frames by source line too */
	bool anonymize; /* names become hashes that are the same in every run */
	enum frames_names names;
	const struct filter *filter; /* NULL: none */
	struct intern strings;
	struct index index;
	struct frames_row *rows;
	size_t capacity;
	uint32_t count;
};

/* All zero is empty. */
void frames_fini(struct frames *f);

/* Memory that they take. */
static inline size_t frames_bytes(const struct frames *f)
{
	return intern_bytes(&f->strings) + index_bytes(&f->index) + f->capacity * sizeof(*f->rows);
}

/* Takes name, file and module as they are in the profile. 0 with the frame's number, the old one for a frame
 * already there; or -ENOMEM, -EOVERFLOW. */
int frames_add(
    struct frames *f, const char *name, const char *file, const char *module, int64_t line, uint32_t *number);

#endif
