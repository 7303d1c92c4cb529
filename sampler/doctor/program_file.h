/* SPDX-License-Identifier: Apache-2.0 */
/* What a program's file, or a library's, contains for profilers and debuggers. The file is hostile input. */
#ifndef SAMPLER_DOCTOR_PROGRAM_FILE_H
#define SAMPLER_DOCTOR_PROGRAM_FILE_H

#include <stdbool.h>

struct program_file {
	bool whole;          /* it is as long as its headers say */
	bool shared_library; /* nothing to execute: no program interpreter, but a name to be linked by */
	bool object;         /* not linked yet, or a core dump */
	bool symbols, debug, debug_link, unwind, build_id;
	bool own_malloc; /* exports malloc: a program's own comes before any preloaded one */
	bool symbolic;   /* binds its calls to itself first (DF_SYMBOLIC) */
	bool exports_allocator;
	char allocator[64]; /* a function of an allocator that it contains; "" none is known */
	char library[64];   /* an allocator's shared library that it is linked to; "" none */
};

/* Returns 0, or -errno if the file cannot be opened; one that is no ELF file contains nothing. */
int program_file_read(struct program_file *file, const char *path);

#endif
