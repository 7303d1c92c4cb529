/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded profiles in columns: what an answer of /api/v1 is made of. */
#ifndef SERVE_API_INPUT_H
#define SERVE_API_INPUT_H

#include <stdbool.h>
#include <stddef.h>

struct profile;

/* Borrows everything. */
struct api_input {
	struct profile *const *profiles;
	const size_t *columns; /* of each profile */
	size_t count;
	/* one; of a difference two, base and new; of growth one for each snapshot, by time. Several
	 * profiles in one column are added up. */
	size_t column_count;
	const char *title; /* what it is of, "" for what the profile says */
	/* Of growth: whose each profile is, numbers below `count`; those of one follow each other by time.
	 * NULL: all are of one process. */
	const size_t *owners;
	/* Of growth, of each profile: its process had ended before, so what it had in use counts no longer.
	 * NULL: none. */
	const bool *ended;
};

#endif
