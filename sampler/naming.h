/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for a snapshot: turns the frames of a process' stacks into the mappings, functions and locations of a profile.
 */
#ifndef SAMPLER_NAMING_H
#define SAMPLER_NAMING_H

#include "pprof/profile.h"
#include "sampler/process.h"

#include <stdbool.h>

struct naming;

/* Resolves the frames of the stacks for which `used[stack]` is set (stacks_node_count() of them) in batches per file. The
 * process' main program becomes the first mapping. detail, debuginfod: see snapshot.h. NULL: out of memory. */
struct naming *naming_new(struct profile *profile, const struct process *process, const bool *used, int detail,
    bool debuginfod);
void naming_free(struct naming *naming);

/* What stands for the kernel at the inner end of the stacks of mappings. */
#define NAMING_MMAP "[mmap]"

/* Location ids of a stack, innermost first and without the allocator's own frames, in an array that the naming owns
 * and uses again. mapped: NAMING_MMAP goes first. Returns their number. */
size_t naming_stack(struct naming *naming, uint32_t stack, bool mapped, const uint32_t **locations);

/* The location of a marker frame ("[lost stack]"), made when first asked for; 0 on failure. */
uint32_t naming_marker(struct naming *naming, const char *marker);

#endif
