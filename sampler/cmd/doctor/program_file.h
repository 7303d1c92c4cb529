/* SPDX-License-Identifier: Apache-2.0 */
/* What the file of a program or library contains for profilers and debuggers. The file is hostile input. */
#ifndef SAMPLER_CMD_DOCTOR_PROGRAM_FILE_H
#define SAMPLER_CMD_DOCTOR_PROGRAM_FILE_H

#include "sampler/inject/program_symbols.h"

#include <stdbool.h>

struct program_file {
	bool whole;          /* it is as long as its headers say */
	bool shared_library; /* cannot be executed: no program interpreter, but a name to be linked by */
	bool object;         /* not linked yet, or a core dump */
	bool debug, debug_link, unwind, build_id;
	bool symbolic;    /* binds its calls to itself first (DF_SYMBOLIC) */
	char library[64]; /* the allocator's shared library that it is linked to; "" if there is none */
	struct program_symbols inside;
};

/* Returns 0, or -errno if the file cannot be opened. A file that is not ELF contains nothing. */
int program_file_read(struct program_file *file, const char *path);

#endif
