/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a profile: turns the frames of a process' stacks into mappings, functions and locations.
 */
#ifndef SAMPLER_WRITE_SYMBOLIZER_H
#define SAMPLER_WRITE_SYMBOLIZER_H

#include "pprof/model/profile.h"
#include "sampler/linux/jit_files.h"
#include "sampler/symbol/answer.h"
#include "sampler/unwind/maps.h"
#include "sampler/unwind/stacks.h"

#include <stdbool.h>

struct symbolizer;
struct symbols;

/* Which stacks are named, and how. All of it is borrowed while the symbolizer lives. */
struct symbolizer_source {
	const struct stacks *stacks;
	const struct maps *maps;
	const char *program; /* path of the executable, which becomes the first mapping */
	const char *called;  /* the name that its mappings get in place of the path; NULL: none */
	const struct perf_map_file *perf_map; /* names of code generated at run time; NULL: none */
	const struct jitdump_file *jitdump;   /* the same, used first; NULL: none */
	struct symbols *symbols;
	enum symbol_detail detail;
	bool allocator_stays; /* else the allocator's own frames are cut off at the inner end */
};

/* The `symbols` of all profiles of one snapshot, which share most of their frames. NULL if out of memory.
 * symbols_free() frees it. */
struct symbols *symbolizer_symbols(enum symbol_detail detail, bool debuginfod);

/* Resolves the frames of the stacks for which used[stack] is set, file by file. `used` has
 * stacks_node_count() elements. NULL if out of memory. */
struct symbolizer *symbolizer_new(
    struct profile *profile, const struct symbolizer_source *source, const bool *used);
void symbolizer_free(struct symbolizer *symbolizer);

/* The marker at the inner end of the stacks of mappings, where other stacks have the allocating function. */
#define SYMBOLIZER_MMAP "[mmap]"

/* Gives the location ids of a stack, innermost first, in an array that the symbolizer owns and uses again.
 * mapped: SYMBOLIZER_MMAP comes first. Returns their number. */
size_t symbolizer_stack(
    struct symbolizer *symbolizer, uint32_t stack, bool mapped, const uint32_t **locations);

/* Does the stack lead through the program's own file without a name for any function there? False if no names
 * were looked up. */
bool symbolizer_is_stripped(const struct symbolizer *symbolizer, uint32_t stack);

/* The location id of a marker frame such as "[lost stack]". 0 on failure. */
uint32_t symbolizer_marker(struct symbolizer *symbolizer, const char *marker);

#endif
