/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of code that a process generated at run time: its JIT compiler writes them into a jitdump or a
 * perf map. The jitdump counts where both have a name, because it says also when the code was there.
 */
#ifndef SAMPLER_WRITE_GENERATED_NAMES_H
#define SAMPLER_WRITE_GENERATED_NAMES_H

#include "pprof/model/profile.h"
#include "sampler/linux/jit_files.h"
#include "sampler/symbol/answer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generated_names {
	struct perfmap *perfmap;
	struct jitdump *jitdump;
};

/* Where the names are. NULL: there is no such file. */
struct generated_files {
	const struct perf_map_file *perf_map;
	const struct jitdump_file *jitdump;
};

/* Reads the names of the code at these addresses. A file that cannot be read as a whole gives a comment in
 * the profile. Returns 0 or -ENOMEM. */
int generated_names_read(struct generated_names *names, const struct generated_files *files,
    uint64_t *addresses, size_t count, struct profile *profile);
void generated_names_fini(struct generated_names *names);

/* The function at an address. "[jit]" if it has no name. lines: file and line are wanted too. */
struct symbol_frame generated_names_find(const struct generated_names *names, uint64_t address, bool lines);

#endif
