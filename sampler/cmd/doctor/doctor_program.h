/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a program's file, and what the doctor says of it. */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_PROGRAM_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_PROGRAM_H

#include "sampler/books/unseen.h"
#include "sampler/inject/program_symbols.h"

#include <stdbool.h>

struct findings;

/* What the file of a program or library contains for profilers and debuggers. The file is hostile input. */
struct doctor_program_file {
	bool whole;          /* it is as long as its headers say */
	bool shared_library; /* cannot be executed: no program interpreter, but a name to be linked by */
	bool object;         /* not linked yet, or a core dump */
	bool debug, debug_link, unwind, build_id;
	bool symbolic;    /* binds its calls to itself first (DF_SYMBOLIC) */
	char library[64]; /* the allocator's shared library that it is linked to; "" if there is none */
	struct program_symbols inside;
};

/* Returns 0, or -errno if the file cannot be opened. A file that is not ELF contains nothing. */
int doctor_program_read(struct doctor_program_file *file, const char *path);

/* Says what is not seen of the program or process, and how to see it. */
void doctor_program_say_unseen(struct findings *findings, const char *name, const struct unseen *unseen);

/* name: the user's name for the file. running: a process executes it. Returns 0, or -errno after a line that
 * says why the file cannot be examined. */
int doctor_program_examine(struct findings *findings, const char *path, const char *name, bool running);

#endif
