/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a profile that a filter selects, as a profile for other tools: what traces with that filter
 * show. Frames that a filter hides are left out of the stacks. A stack that is hidden as a whole becomes
 * "[hidden]".
 */
#ifndef PPROF_ANALYSIS_FILTERED_PROFILE_H
#define PPROF_ANALYSIS_FILTERED_PROFILE_H

struct filter;
struct profile;
struct late_names;

/* On 0 the caller owns *out. -ENOMEM, -EOVERFLOW. */
int filtered_profile_make(const struct profile *profile, const struct filter *filter,
    const struct late_names *names, struct profile **out);

#endif
