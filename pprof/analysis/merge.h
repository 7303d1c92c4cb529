/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds profiles up into one profile, by the rules of google/pprof's Merge:
 *
 *     sample types   those that all profiles have
 *     time           the earliest
 *     duration       the sum
 *     period         the largest
 *     comments       each different comment once
 *     mappings       two mappings are one if they agree in build id, offset and size, wherever the file was
 *                    loaded; the file's name stands for a missing build id
 *     samples        values of equal stacks are added
 *
 * Beyond these rules: where a process has inherited blocks from another by fork(2), the samples of the two
 * processes are not added. The label ORIGIN_LABEL_PID keeps them apart.
 */
#ifndef PPROF_ANALYSIS_MERGE_H
#define PPROF_ANALYSIS_MERGE_H

#include <stdbool.h>
#include <stddef.h>

struct profile;

/* Returns 0; -ENOMEM; -EOVERFLOW; or -ENODATA if a profile has no sample type in common with the others, or
 * another period type: then *culprit is its number. On 0 the caller owns *out. anonymize: names become hashes
 * (anonymous.h), and comments, labels with text, and build ids are left out. */
int merge_profiles(
    struct profile *const *profiles, size_t count, bool anonymize, struct profile **out, size_t *culprit);

#endif
