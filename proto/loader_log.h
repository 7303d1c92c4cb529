/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loader has mapped after the program's start, and when: a library that is unmapped leaves its
 * addresses to the next, and the sampler unwinds stacks when it is its turn.
 *
 * Time is counted in calls of dlclose: `unmaps` of a process' place goes up when one begins and when it
 * ends. Each copied stack carries the count. So as long as it is even as many calls as have begun have
 * ended, and nothing is unmapped (but what the C library unmaps by itself); what was mapped at an address
 * then is what is mapped there at the end. Before each change the program run's own process notes which
 * files it has: they were mapped at the end of the count that ends.
 *
 * Forked children count on from where their parent was, in their own place, and note nothing.
 */
#ifndef PROTO_LOADER_LOG_H
#define PROTO_LOADER_LOG_H

#include <stdatomic.h>
#include <stdint.h>

/* The low bits of the word are the number of calls that have begun and not ended: if it is not 0, something
 * may be unmapped now. (A call that never ends is one of them for good.) */
enum { LOADER_LOG_CALLS_BITS = 16 };
#define LOADER_LOG_BEGIN ((1ull << LOADER_LOG_CALLS_BITS) + 1)
#define LOADER_LOG_END   ((1ull << LOADER_LOG_CALLS_BITS) - 1)

static inline uint64_t loader_log_count(uint64_t unmaps)
{
	return unmaps >> LOADER_LOG_CALLS_BITS;
}

static inline uint64_t loader_log_calls(uint64_t unmaps)
{
	return unmaps & ((1ull << LOADER_LOG_CALLS_BITS) - 1);
}

enum { LOADER_LOG_FILES = 256, LOADER_LOG_PATH_BYTES = 256, LOADER_LOG_BUILD_ID_BYTES = 20 };
#define LOADER_LOG_STAYS UINT64_MAX

/* Code of a file. */
struct loader_log_file {
	uint64_t since,
	    until; /* the first and the last count at which it was mapped; LOADER_LOG_STAYS: so far */
	uint64_t start, end; /* as in struct region_module, as is all that follows */
	uint64_t file_offset;
	uint32_t build_id_bytes;
	uint8_t build_id[LOADER_LOG_BUILD_ID_BYTES];
	char path[LOADER_LOG_PATH_BYTES];
};

struct loader_log {
	_Atomic uint64_t changes; /* odd while it is written */
	uint64_t count;           /* it is whole for lower counts... */
	uint64_t whole_since;     /* ...from this one on: what was before has made room */
	uint32_t files;           /* used so far */
	uint32_t full;            /* 1: there was no room for a file */
	struct loader_log_file file[LOADER_LOG_FILES];
};

_Static_assert(sizeof(struct loader_log_file) == 320, "no padding");

#endif
