/* SPDX-License-Identifier: Apache-2.0 */
/* A location of a profile, as profile.h takes and gives it and as tables.h keeps it. */
#ifndef PPROF_MODEL_PROFILE_LOCATION_H
#define PPROF_MODEL_PROFILE_LOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_line {
	uint32_t function;    /* id, never 0 */
	int64_t line, column; /* 0 unknown */
};

struct profile_location {
	uint32_t mapping;                 /* id, 0 for none */
	uint64_t address;                 /* run-time pc; the return address minus 1 for every caller */
	const struct profile_line *lines; /* innermost inlined function first, physical function last */
	size_t line_count;
	bool folded; /* several functions share this address (identical code folding) */
};

#endif
