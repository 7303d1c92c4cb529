/* SPDX-License-Identifier: Apache-2.0 */
/* Which of many profiles are the same: copies, and the raw twin of a profile that `heaptap symbolize` wrote.
 */
#ifndef SAMPLER_CMD_REPORT_DUPLICATES_H
#define SAMPLER_CMD_REPORT_DUPLICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

/* What a profile is known by. */
struct duplicates_facts {
	const char *path;     /* borrowed */
	uint64_t measurement; /* seeded hash of all but stacks: types, times, comments, and sums of values */
	uint64_t names;       /* addresses that have a name */
	bool timed;           /* without a time, equal profiles may be of two processes */
	size_t group;         /* profiles of two groups are never the same */
	const struct duplicates_facts *same; /* by duplicates_find(); NULL: this profile counts */
};

/* Pure. path is only kept. */
struct duplicates_facts duplicates_read(const char *path, const struct profile *profile, size_t group);

/* Of profiles that are the same, the one with the most names counts, else the first in the caller's array of
 * facts. 0 or -ENOMEM. */
int duplicates_find(struct duplicates_facts *const *facts, size_t count);

#endif
