/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference between two profiles of one process: what was allocated between them.
 *
 * alloc_* of a snapshot are totals: they count from the start of the process. A server that adds up all
 * profiles that it receives must be sent differences, not totals. The difference is made stack by stack.
 *
 * The total of a process never falls, but the total of one stack may: a label has changed, or the daemon was
 * restarted and does not know the stacks of blocks that were freed before. Then the same bytes are counted
 * under another stack, where they look new. So what one stack has lost is subtracted from other stacks:
 *
 *     1. from samples of the same stack with other labels
 *     2. from samples without a stack (`[lost stack]`)
 *     3. from stacks that the earlier profile does not have
 *     4. from all others
 *
 * No difference is negative, and the differences of all stacks add up to the difference of the process.
 */
#ifndef PPROF_ANALYSIS_SINCE_H
#define PPROF_ANALYSIS_SINCE_H

#include <stdbool.h>
#include <stdint.h>

struct origin;
struct profile;

/* The earlier profile. All zero: there is no earlier profile, so all totals are new. */
struct since {
	const struct profile *first; /* borrowed */
	int64_t time_ns;             /* when the earlier profile was taken */
	bool unknown;                /* the earlier profile is lost: every difference is 0 */
};

/* Is this sample type of this profile a total? */
bool since_is_total(const struct origin *origin, const char *type);

/*
 * The values of `last`, by sample and sample type, with differences in the place of totals. The caller frees
 * them. NULL if there is no memory. *fallen becomes the sum of what was subtracted from other stacks (steps 2
 * to 4).
 */
int64_t *since_values(
    const struct since *since, const struct profile *last, const struct origin *origin, int64_t *fallen);

/* Makes the part of a profile that the next difference needs: a smaller profile with the totals of each
 * stack. Code in files loses its names, for its place in the file identifies it. Returns 0 or -errno. On 0
 * the caller owns *kept. */
int since_keep(const struct profile *profile, const struct origin *origin, struct profile **kept);

#endif
