/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What came since an earlier profile of the same process.
 *
 * alloc_* of a snapshot counts from the start of the process. A server that adds up what it gets must be sent
 * the difference to the profile that it has. The difference is made stack by stack.
 *
 * A total never falls, but the stack that it is counted under may be another: a label has changed, or the
 * daemon was started again and knows no stack of what was freed before. What has fallen under some stacks is
 * taken from others, so that the sum of all differences is the total of the process: first from samples of
 * the same stack, then from the nameless ones (`[lost stack]`), then from stacks that the earlier profile did
 * not have, then from any. No difference is negative.
 */
#ifndef PPROF_ANALYSIS_SINCE_H
#define PPROF_ANALYSIS_SINCE_H

#include <stdbool.h>
#include <stdint.h>

struct origin;
struct profile;

/* The earlier profile. All zero: there was none, so everything since the start of the process is new. */
struct since {
	const struct profile *first; /* borrowed */
	int64_t time_ns;             /* of it */
	bool unknown;                /* there was one, but it is not known any more: no total is new */
};

/* Does this sample type of this profile count from the start of the process? */
bool since_is_total(const struct origin *origin, const char *type);

/*
 * The values of `last`, samples by sample types, with what came since in the columns of totals. The caller
 * frees them; NULL if there is no memory. *fallen is the sum over all totals of what was taken from samples
 * of other stacks.
 */
int64_t *since_values(
    const struct since *since, const struct profile *last, const struct origin *origin, int64_t *fallen);

/* What of a profile is needed as an earlier one: its totals by stack, as a smaller profile. Code that is
 * known by its place in a file loses its names. 0 with *kept the caller's, or -errno. */
int since_keep(const struct profile *profile, const struct origin *origin, struct profile **kept);

#endif
