/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a profile: no address stands for two pieces of code.
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
#ifndef SAMPLER_WRITE_PROFILE_ADDRESSES_H
#define SAMPLER_WRITE_PROFILE_ADDRESSES_H

#include "pprof/model/profile.h"
#include "sampler/unwind/stacks.h"

#include <stdbool.h>
#include <stdint.h>

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
