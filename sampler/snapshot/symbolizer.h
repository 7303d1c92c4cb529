/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for a snapshot: turns the frames of a process' stacks into the mappings, functions and locations of a
 * profile.
 */
#ifndef SAMPLER_SNAPSHOT_SYMBOLIZER_H
#define SAMPLER_SNAPSHOT_SYMBOLIZER_H

#include "pprof/profile/profile.h"
#include "sampler/linux/jitdump_file.h"
#include "sampler/linux/perf_map_file.h"
#include "sampler/symbol/answer.h"
#include "sampler/unwind/maps.h"
#include "sampler/unwind/stacks.h"

#include <stdbool.h>

struct symbolizer;
struct symbols;

/* Which stacks to name, and how. Borrowed for as long as the symbolizer lives. */
struct symbolizer_source {
	const struct stacks *stacks;
	const struct maps *maps;
	const char *program;                  /* path of the executable: becomes the first mapping */
	const char *called;                   /* the name that its mappings get; NULL: its path */
	const struct perf_map_file *perf_map; /* the names of code generated at run time; NULL: unknown */
	const struct jitdump_file *jitdump;   /* likewise, before the former; NULL: unknown */
	struct symbols *symbols;
	enum symbol_detail detail;
	bool allocator_stays; /* else the allocator's own frames are cut off at the inner end */
};

/* For the symbolizer_source of all profiles of one snapshot, which share most of their frames. NULL: out of
 * memory. symbols_free() ends it. */
struct symbols *symbolizer_symbols(enum symbol_detail detail, bool debuginfod);

/* Resolves the frames of the stacks for which `used[stack]` is set (stacks_node_count() of them) in batches
 * per file. NULL: out of memory. */
struct symbolizer *symbolizer_new(
    struct profile *profile, const struct symbolizer_source *source, const bool *used);
void symbolizer_free(struct symbolizer *symbolizer);

/* The marker at the inner end of the stacks of mappings, in place of the allocating function. */
#define SYMBOLIZER_MMAP "[mmap]"

/* Location ids of a stack, innermost first, in an array that the symbolizer owns
 * and uses again. mapped: SYMBOLIZER_MMAP goes first. Returns their number. */
size_t symbolizer_stack(
    struct symbolizer *symbolizer, uint32_t stack, bool mapped, const uint32_t **locations);

/* Does the stack lead through the program's own file, and has none of its functions there a name? False where
 * no names were looked up. */
bool symbolizer_is_stripped(const struct symbolizer *symbolizer, uint32_t stack);

/* The location of a marker frame ("[lost stack]"), made when first asked for; 0 on failure. */
uint32_t symbolizer_marker(struct symbolizer *symbolizer, const char *marker);

#endif
