/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of a profile: the ranges of profile_addresses with their files and build ids, and two made-up
 * mappings, for markers and for a program that is not mapped. Readers take the first mapping for the program.
 */
#ifndef SAMPLER_WRITE_PROFILE_MAPPINGS_H
#define SAMPLER_WRITE_PROFILE_MAPPINGS_H

#include "pprof/model/profile.h"
#include "sampler/unwind/maps.h"
#include "sampler/unwind/stacks.h"
#include "sampler/write/profile_addresses.h"

#include <stdbool.h>
#include <stdint.h>

struct profile_mappings;

/* All of it is borrowed while the mappings live. */
struct profile_mappings_source {
	const struct stacks *stacks;
	const struct maps *maps;
	const char *program; /* path of the executable */
	const char *called;  /* the name that its mappings get in place of the path; NULL: none */
};

/* Adds the program's mapping to the profile, the others when a frame needs them. NULL if out of memory. */
struct profile_mappings *profile_mappings_new(
    struct profile *profile, const struct profile_mappings_source *source);
void profile_mappings_free(struct profile_mappings *mappings);

/* Gives the mapping id and the address of a frame that is no marker. False if a hostile target has used up
 * all addresses. */
bool profile_mappings_find(
    struct profile_mappings *mappings, uint32_t frame, uint32_t *id, uint64_t *address);

/* The id of the markers' mapping "[heaptap]", one page that starts at PROFILE_MAPPINGS_MARKER_BASE. */
#define PROFILE_MAPPINGS_MARKER_BASE PROFILE_ADDRESSES_RESERVED_START
uint32_t profile_mappings_markers(struct profile_mappings *mappings);

/* Is it the file of the program? */
bool profile_mappings_is_program(const struct profile_mappings *mappings, const struct module *module);

/* The name of a mapping that has no file, by its enum map_kind: "[stack]". */
const char *profile_mappings_kind_name(uint8_t kind);

#endif
