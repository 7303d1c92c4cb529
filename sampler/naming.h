/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for a snapshot: turns the frames of a process' stacks into the mappings, functions and locations of a
 * profile.
 */
#ifndef SAMPLER_NAMING_H
#define SAMPLER_NAMING_H

#include "pprof/profile.h"
#include "sampler/maps.h"
#include "sampler/stacks.h"

#include <stdbool.h>

struct naming;
struct symbols;

/* Whose stacks are to be named, and how. Borrowed for as long as the naming lives. */
struct naming_source {
	const struct stacks *stacks;
	const struct maps *maps;
	const char *program; /* path of the executable: becomes the first mapping */
	pid_t pid;           /* to find the names of code made at run time; 0: unknown */
	struct symbols *symbols;
	int detail;           /* of the symbols; see snapshot.h */
	bool allocator_stays; /* else the allocator's own frames are cut off at the inner end */
};

/* For the naming_source of all profiles of one snapshot, which have most of their frames in common. NULL: out
 * of memory. symbols_free() ends it. */
struct symbols *naming_symbols(int detail, bool debuginfod);

/* Resolves the frames of the stacks for which `used[stack]` is set (stacks_node_count() of them) in batches
 * per file. NULL: out of memory. */
struct naming *naming_new(struct profile *profile, const struct naming_source *source, const bool *used);
void naming_free(struct naming *naming);

/* What stands for the kernel at the inner end of the stacks of mappings. */
#define NAMING_MMAP "[mmap]"

/* Location ids of a stack, innermost first, in an array that the naming owns
 * and uses again. mapped: NAMING_MMAP goes first. Returns their number. */
size_t naming_stack(struct naming *naming, uint32_t stack, bool mapped, const uint32_t **locations);

/* The location of a marker frame ("[lost stack]"), made when first asked for; 0 on failure. */
uint32_t naming_marker(struct naming *naming, const char *marker);

#endif
