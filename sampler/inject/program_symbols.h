/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the symbol tables of a program or library tell: whether it has an allocator inside, whose calls
 * heaptap does not see, and which interpreter it is.
 *
 * The file is hostile input: the sampler itself reads files that targets have mapped. So it is read in pieces
 * of bounded number and size, and never held in memory as a whole.
 */
#ifndef SAMPLER_INJECT_PROGRAM_SYMBOLS_H
#define SAMPLER_INJECT_PROGRAM_SYMBOLS_H

#include "sampler/inject/runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program_symbols {
	bool table;      /* it is not stripped: it has a table of all its functions */
	bool whole;      /* all of its tables were read */
	bool own_malloc; /* it exports malloc: a program's own malloc comes before any preloaded one */
	bool exports_allocator;
	char debug_link[64];    /* the name of its debug file; "": it names none */
	char allocator[32];     /* a function of the allocator inside; "": none is known */
	struct runtime runtime; /* in the file, or in a library that it needs */
};

/* Reads `bytes` at `offset`, all or nothing. Returns 0, or another number on failure. */
typedef int program_symbols_reader(void *context, void *to, size_t bytes, uint64_t offset);

/* Returns 0, or -ENOEXEC if it is no 64-bit little-endian ELF file or has no sections: then nothing is
 * known. */
int program_symbols_read(struct program_symbols *symbols, program_symbols_reader *reader, void *context);

/* The same for the open file fd. */
int program_symbols_read_file(struct program_symbols *symbols, int fd);

#endif
