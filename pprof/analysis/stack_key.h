/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number for the stack and labels of a sample, the same in every profile of one process and in every run.
 *
 * Code in a file is known by file and offset, because the addresses of a profile may be moved
 * (sampler/write/profile_mappings.h). Other code is known by the names of its functions; without names by
 * its address. Two stacks with one number are taken for one. That happens by chance once in 2^64 pairs. A
 * file that was made to have such pairs spoils its own numbers only.
 */
#ifndef PPROF_ANALYSIS_STACK_KEY_H
#define PPROF_ANALYSIS_STACK_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_label;

struct stack_keys {
	const struct profile *profile; /* borrowed */
	uint64_t *locations;           /* by id */
};

/* 0 or -ENOMEM. */
int stack_keys_init(struct stack_keys *keys, const struct profile *profile);
void stack_keys_fini(struct stack_keys *keys);

uint64_t stack_key_without_labels(const struct stack_keys *keys, size_t sample);

/* Is the code at this location known by names? Otherwise by file and offset, or by its address. */
bool stack_key_is_named(const struct profile *profile, uint32_t location);

/* Does a label stay? The age of blocks and their mean size change with time. */
bool stack_key_lasts(const struct profile_label *label);

/* Leaves out the labels that change. */
uint64_t stack_key_lasting(const struct stack_keys *keys, size_t sample);

/* Leaves out labels that are numbers: for a server that does not keep them. */
uint64_t stack_key_without_numbers(const struct stack_keys *keys, size_t sample);

/* Of bytes, seeded with `hash`; 0 to begin with. FNV-1a with a final mix; no secret. */
uint64_t stack_key_mix(uint64_t hash, const void *bytes, size_t length);

#endif
