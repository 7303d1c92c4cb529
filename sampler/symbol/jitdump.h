/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines of code generated at run time, from a jit-PID.dump, which CPython (-X perf_jit), node
 * (--perf-prof), JVM agents, LLVM and .NET write for perf.
 *
 * A file has a header and records. A record has a size, and says: code was made here, under this name; or it
 * was moved there; or these are the lines of the code that the next record names. The writer only appends,
 * and addresses are used again: where ranges overlap, the later record is valid. So the file is read once
 * from its beginning, and the records about the wanted addresses are then used from the last to the first.
 * The bytes of the code, most of the file, are skipped. (tools/perf/Documentation/jitdump-specification.txt
 * in Linux. The unwind rows in it are read while stacks are unwound: sampler/unwind/jit_rows.h.)
 *
 * The target writes the file: it is hostile input, and may grow while it is read. A last record that is
 * incomplete is not read.
 */
#ifndef SAMPLER_SYMBOL_JITDUMP_H
#define SAMPLER_SYMBOL_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JITDUMP_BYTES_MAX = 1 << 30,    /* read from the beginning of a file */
	JITDUMP_MATCHES_MAX = 64 << 10, /* records about wanted addresses that are kept, the last ones */
	JITDUMP_NAME_MAX = 1024,        /* bytes of a function's or a file's name; longer ones are cut */
	JITDUMP_LINES_MAX = 16 << 20,   /* steps of the search for lines, in one file */
};

struct jitdump;

/* A file. `read` reads all bytes or fails; it returns 0 or -errno. */
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

/* Finds the names. Returns 0, -ENOEXEC if the file is no jitdump, -ENOMEM, or -errno of a read; after the
 * last two the names that were found so far stay. Pure but for the reads. Call it once. */
int jitdump_take(struct jitdump *jitdump, const struct jitdump_source *source);

/* The same of an open file. */
int jitdump_read(struct jitdump *jitdump, int fd);

/* Is there a part of the file that was not read and may have names? */
bool jitdump_cut(const struct jitdump *jitdump);

/* The name of the code at one of the addresses, owned by the jitdump. NULL if there is none. */
const struct jitdump_name *jitdump_find(const struct jitdump *jitdump, uint64_t addr);

#endif
