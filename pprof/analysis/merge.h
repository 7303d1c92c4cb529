/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds profiles up into one, as google/pprof's Merge does: the sample types that all of them have; the
 * earliest time, the sum of durations, the largest period, each comment once. Mappings are equal if build id
 * (or, without one, file name), offset and size are: a file that another run loaded at another address is one
 * mapping, and its locations become one. Rows of processes that have inherited blocks from each other stay
 * apart, by the label ORIGIN_LABEL_PID.
 */
#ifndef PPROF_ANALYSIS_MERGE_H
#define PPROF_ANALYSIS_MERGE_H

#include <stdbool.h>
#include <stddef.h>

struct profile;

/* On 0 the caller owns *out. -ENOMEM, -EOVERFLOW; -ENODATA: no sample type in common, or different period
 * types; then *culprit is the first profile that does not fit. anonymize: names become hashes (anonymous.h);
 * comments, labels with text and build ids are left out. */
int merge_profiles(
    struct profile *const *profiles, size_t count, bool anonymize, struct profile **out, size_t *culprit);

#endif
