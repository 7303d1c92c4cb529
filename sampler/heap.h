/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of one process: what its samples say was allocated, by stack, and which stack each live slot came from.
 *
 *   sample arrives  -> site of its stack += weight           (alloc_*: every sample, once)
 *                   -> memory of its slot = (seq, stack)
 *   snapshot        -> for each live slot of the shared table: its stack, if the memory has its seq,
 *                      else [lost stack]                     (inuse_*: the table is the truth)
 *
 * The process counts every sample itself (struct region_place), so what was allocated under lost stacks is what it
 * counted less what arrived here. Nothing a lost record does can change a total.
 */
#ifndef SAMPLER_HEAP_H
#define SAMPLER_HEAP_H

#include "proto/weight.h"
#include "sampler/region.h"
#include "sampler/stacks.h"

#include <stdbool.h>
#include <stdint.h>

struct heap;

/* `segments`: of the region. NULL: out of memory. */
struct heap *heap_new(uint32_t segments);
void heap_free(struct heap *heap);

/* Enters a sample. False if this (slot, seq) is known already (two events saw it) or memory has run out. */
bool heap_add(struct heap *heap, uint32_t slot, uint64_t seq, uint32_t stack, struct weight weight);

/* For a slot inherited at a fork: its stack without an allocation. */
void heap_inherit(struct heap *heap, uint32_t slot, uint64_t seq, uint32_t stack);

/* The stack of a slot's `seq`th sample; UINT32_MAX unknown. */
uint32_t heap_stack_of(const struct heap *heap, uint32_t slot, uint64_t seq);

/* Estimates with the variance of their sampling error (of bytes and of objects). */
struct heap_estimate {
	uint64_t samples;
	double bytes, objects;
	double bytes_variance, objects_variance;
};

struct heap_row {
	uint32_t stack;  /* UINT32_MAX: the lost stacks */
	bool inherited;
	uint64_t alloc_bytes_q8, alloc_objects_q16, alloc_samples;
	uint64_t inuse_bytes_q8, inuse_objects_q16, inuse_samples;
};

struct heap_view {
	struct heap_row *rows; /* the caller's, free() */
	size_t count;
	struct heap_estimate allocated, inuse, inherited; /* inuse includes inherited */
	struct heap_estimate lost_alloc, lost_inuse;      /* under [lost stack], included above */
};

/* Reads the shared table of `place` and puts everything together. Returns 0 or -ENOMEM. */
int heap_read(const struct heap *heap, const struct region *region, uint32_t place, struct heap_view *view);

#endif
