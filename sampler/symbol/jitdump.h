/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines of code generated at run time, from a jit-PID.dump, which CPython (-X perf_jit), node
 * (--perf-prof), JVM agents, LLVM and .NET write for perf.
 *
 * A file header, and records of a size each: code was made here, under this name; moved there; the lines of
 * the code that is named next. The writer only appends, and an address is used again: where ranges overlap,
 * the later record is valid. So the file is looked through once from its beginning, and what was found for
 * the addresses that are asked for is used from its end. The bytes of the code, most of the file, are passed
 * over. (tools/perf/Documentation/jitdump-specification.txt in Linux. The unwind rows in it are read while
 * stacks are unwound: sampler/unwind/jit_rows.h.)
 *
 * The target writes the file: it is hostile input, and may be written at the same time (a last record that is
 * not whole is not read).
 */
#ifndef SAMPLER_SYMBOL_JITDUMP_H
#define SAMPLER_SYMBOL_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JITDUMP_BYTES_MAX = 1 << 30,    /* that are read of a file, its first ones */
	JITDUMP_MATCHES_MAX = 64 << 10, /* records about addresses that are asked for, the last ones */
	JITDUMP_NAME_MAX = 1024,        /* bytes of a function's or a file's name; longer ones are cut */
	JITDUMP_LINES_MAX = 16 << 20,   /* steps that looking for lines may take, of a file */
};

struct jitdump;

/* A file. read: 0 or -errno, all or nothing. */
struct jitdump_source {
	int (*read)(void *context, void *to, size_t bytes, uint64_t offset);
	void *context;
	uint64_t bytes; /* of the file */
};

struct jitdump_name {
	const char *function;
	const char *file; /* NULL: no line is known */
	uint32_t line;    /* 0: not known */
};

/* For these addresses, in any order. NULL when out of memory. */
struct jitdump *jitdump_new(const uint64_t *addrs, size_t count);
void jitdump_free(struct jitdump *jitdump);

/* Names what it can. 0; -ENOEXEC: it is no such file; -ENOMEM, or -errno of a read, with what was found until
 * then. Pure but for the reads; call it once. */
int jitdump_take(struct jitdump *jitdump, const struct jitdump_source *source);

/* The same of an open file. */
int jitdump_read(struct jitdump *jitdump, int fd);

/* Was a part of the file not read that may have names? */
bool jitdump_cut(const struct jitdump *jitdump);

/* The name of the code at one of the addresses, owned by the jitdump; NULL: none. */
const struct jitdump_name *jitdump_find(const struct jitdump *jitdump, uint64_t addr);

#endif
