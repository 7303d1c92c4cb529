/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the symbol tables of a program's file, or of a library's, tell: whether an allocator is inside, where
 * heaptap sees nothing of it, and which interpreter it is.
 *
 * The file is hostile input, read in pieces of bounded number and size: nothing of it is kept in memory, for
 * the sampler itself reads what targets have mapped.
 */
#ifndef SAMPLER_LOADER_PROGRAM_SYMBOLS_H
#define SAMPLER_LOADER_PROGRAM_SYMBOLS_H

#include "sampler/loader/runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program_symbols {
	bool table;      /* it has a table of all its functions: it is not stripped */
	bool whole;      /* all of its tables were read */
	bool own_malloc; /* exports malloc: a program's own comes before any preloaded one */
	bool exports_allocator;
	char debug_link[64];    /* the name that its debug file would have; "": it names none */
	char allocator[32];     /* a function of an allocator that it contains; "": none is known */
	struct runtime runtime; /* in it, or in a library that it needs */
};

/* Reads `bytes` at `offset`, all or nothing. Returns 0 or another number. */
typedef int program_symbols_reader(void *context, void *to, size_t bytes, uint64_t offset);

/* Returns 0; -ENOEXEC: no 64-bit little-endian ELF file, or one without sections: nothing is known. */
int program_symbols_read(struct program_symbols *symbols, program_symbols_reader *reader, void *context);

/* The same of the open file fd. */
int program_symbols_read_file(struct program_symbols *symbols, int fd);

#endif
