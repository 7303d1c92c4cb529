/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of functions that are made at run time, as the profiles of a process know them together. A
 * snapshot from before the names were there (`jcmd PID Compiler.perfmap`, for example) has [jit] at an
 * address at which a later one has a name. That must not make two rows of a function.
 */
#ifndef PPROF_ANALYSIS_CODE_NAMES_H
#define PPROF_ANALYSIS_CODE_NAMES_H

#include "pprof/table/index.h"
#include "pprof/table/intern.h"

#include <stddef.h>
#include <stdint.h>

struct profile;

struct code_names_entry {
	uint64_t key; /* hash of process and address */
	int64_t time_ns;
	uint32_t name; /* in `names` */
};

struct code_names {
	struct index index;
	struct intern names;
	struct code_names_entry *entries;
	size_t capacity;
	uint32_t count;
};

/* All zero knows none. */
void code_names_fini(struct code_names *names);
size_t code_names_bytes(const struct code_names *names);

/* Takes the names at addresses outside of files; of several names the newest counts. 0 or -ENOMEM. */
int code_names_learn(struct code_names *names, const struct profile *profile);

/* What code_names_of() asks for: of which process a profile is. */
uint64_t code_names_process(const struct profile *profile);

/* The name of a location of a profile that has [jit] there. NULL: it has another name, or none was
 * learned. */
const char *code_names_of(
    const struct code_names *names, const struct profile *profile, uint64_t process, uint32_t location);

#endif
