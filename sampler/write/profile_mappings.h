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

/*
 * ---- the addresses of a profile (profile_mappings_addresses.c): no address stands for two pieces of code.
 *
 * A process reuses addresses. dlclose() gives a library's range back, and the kernel puts the next library
 * there. The stacks of both libraries are kept, so two files are at one range. Readers cannot handle that:
 * some tell stacks apart by addresses alone, some look up mappings by address.
 *
 *	first seen	 0x7f0010-0x7f0014  a.so  ──────> 0x7f0010-0x7f0014  a.so
 *	after dlclose()  0x7f0010-0x7f0016  b.so  ──────> 0x1000000000000000-0x1000000000006000  b.so
 *
 * The mapping that was seen first keeps an address, whatever is mapped there now. An address in one snapshot
 * must not mean something else in the next: a reader that subtracts two snapshots by address would subtract
 * one library from another. Everything here follows from the order in which mappings and frames were first
 * seen, which is the same in every snapshot of a process.
 *
 * A mapping that must move is moved as a whole, so address - start + file_offset stays the same.
 */
struct profile_addresses;

/* Reserved for made-up mappings. vm.mmap_min_addr is higher on every system, so no real mapping is there. */
#define PROFILE_ADDRESSES_RESERVED_START UINT64_C(0x1000)
#define PROFILE_ADDRESSES_RESERVED_END   UINT64_C(0x3000)

/* A mapping of the profile. */
struct profile_addresses_range {
	uint64_t start, limit, file_offset;
	uint32_t mapping; /* number for stacks_mapping(), which gives its file */
};

/* Borrows the stacks. NULL if out of memory. */
struct profile_addresses *profile_addresses_new(const struct stacks *stacks);
void profile_addresses_free(struct profile_addresses *addresses);

/* Gives the range and the address of a frame that is no marker. False if a hostile target has used up all
 * addresses. */
bool profile_addresses_find(
    const struct profile_addresses *addresses, uint32_t frame, uint32_t *range, uint64_t *address);

uint32_t profile_addresses_count(const struct profile_addresses *addresses);
const struct profile_addresses_range *profile_addresses_range(
    const struct profile_addresses *addresses, uint32_t range);

/* Does any range reach into [start, limit)? */
bool profile_addresses_overlaps(const struct profile_addresses *addresses, uint64_t start, uint64_t limit);

#endif
