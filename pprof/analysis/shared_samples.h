/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error of a sum of profiles that have samples in common.
 *
 * Estimates of different blocks are independent, so their variances add up (estimate.h). But a forked child
 * inherits its parent's blocks, and the samples of these blocks. If chance has drawn too many blocks of a
 * stack, the parent and every child have too many. The sum of ten such profiles has ten times the error of
 * one profile, not sqrt(10) times. The same holds for two states of one process.
 *
 * A profile has sums, not samples. So it is not known which samples two profiles have in common. The most
 * that they can have in common is the smaller profile. If the variances of a stack are v and w, the
 * covariance is at most min(v, w), and
 *
 *	Var(sum) <= sum over i and j of min(v_i, v_j)
 *
 * where i and j are the profiles with samples of that stack that one process, the origin, has taken. The
 * bound is never too small. It is exact if each profile has the same samples, or a part of the samples of a
 * larger profile, as children have that keep what they inherited. Samples of different origins or stacks are
 * independent.
 *
 * The label ORIGIN_LABEL_FROM names the origin of inherited blocks. The origin of other blocks is the process
 * of their profile. Two cases have no origin, and get an upper bound that may be far too large (is_bound):
 *   - a profile names neither: then all samples of a stack in one session count as common
 *   - a profile is a sum that does not keep its processes apart: then each of them counts as having all
 */
#ifndef PPROF_ANALYSIS_SHARED_SAMPLES_H
#define PPROF_ANALYSIS_SHARED_SAMPLES_H

#include "pprof/model/estimate.h"
#include "pprof/table/index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

/* Each sum is made twice: of what was allocated, and of what is in use. */
enum shared_samples_side { SIDE_ALLOC, SIDE_INUSE, SIDE_COUNT };

#define OVERLAP_NO_ROW UINT32_MAX

struct shared_samples_part;

/* The profile that is being added. */
struct shared_samples_holder {
	bool counts; /* another profile of its column may have the same samples */
	bool has_process, is_merged;
	uint64_t session, own, from, id;   /* keys; from: of what is inherited from it */
	uint32_t copies, inherited_copies; /* each block in it is counted so often at most */
};

struct shared_samples {
	struct index index; /* of the keys: what there is in the columns */
	uint64_t *keys;
	uint32_t *key_counts;
	size_t key_capacity, key_count_capacity;
	uint32_t key_count, holder_count;
	struct shared_samples_holder holder;
	struct shared_samples_part *parts;
	size_t part_count, part_capacity;
	bool is_bound; /* after shared_samples_find() */
};

/* All zero is empty. */
void shared_samples_fini(struct shared_samples *overlap);
size_t shared_samples_bytes(const struct shared_samples *overlap);

/* Announces a profile that will be added to a column. Call it for all profiles before the first is added. 0
 * or -ENOMEM. */
int shared_samples_expect(struct shared_samples *overlap, const struct profile *profile, size_t column);

/* Says which profile the next samples are of. */
void shared_samples_begin(struct shared_samples *overlap, const struct profile *profile, size_t column);

/* Adds the estimates of one sample, if another profile may have it too. unit: a hash of the stack as it is
 * shown; row: of the traces, or OVERLAP_NO_ROW if it is not selected. 0 or -ENOMEM. */
int shared_samples_add(struct shared_samples *overlap, const struct profile *profile, size_t sample,
    size_t column, uint64_t unit, uint32_t row, const struct estimate sides[SIDE_COUNT]);

/* Calls `found` with the correction of each sum that was made as if its parts were independent: the variance
 * that is missing, and a negative number of samples, for samples that were counted more than once. */
enum shared_samples_scope {
	OVERLAP_ALL,      /* row has no meaning */
	OVERLAP_SELECTED, /* only samples with a row; row has no meaning */
	OVERLAP_ROWS,     /* within each row */
};
typedef void shared_samples_found(
    void *context, size_t column, uint32_t row, enum shared_samples_side side, struct estimate excess);
int shared_samples_find(struct shared_samples *overlap, enum shared_samples_scope scope,
    shared_samples_found *found, void *context); /* 0 or -ENOMEM */

#endif
