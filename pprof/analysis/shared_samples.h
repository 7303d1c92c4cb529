/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that several profiles have in common, and what follows for the error of their sum.
 *
 * Estimates of different blocks are independent and their variances add up (estimate.h). But a forked child
 * inherits its parent's blocks with their samples: a stack of which too many blocks were drawn has too many
 * in the parent and in every child, and ten profiles that hold them have ten times the error of one, not
 * sqrt(10) times. The same holds for two states of one process.
 *
 * Profiles hold sums and not samples, so of two of them with variances v and w in a stack only the most is
 * known that they can have in common: all of the smaller one. The covariance is at most min(v, w), and
 *
 *	Var(sum) <= sum over i and j of min(v_i, v_j)
 *
 * over the holders of what one process, the origin, has sampled with one stack. It is exact if each holds
 * the same samples, or part of what a larger one holds: children that keep what they inherited. It is never
 * too small. Samples of different origins or stacks have nothing in common.
 *
 * The origin of inherited blocks is their label (ORIGIN_LABEL_FROM), that of others the process of their
 * profile. Where neither tells it, whatever one session has of a stack is taken to be in common; where a
 * profile is a sum itself that does not tell its processes apart, each of them is taken to hold all. Both
 * are upper bounds too, but may be far off, so is_bound says that it happened.
 */
#ifndef PPROF_ANALYSIS_SHARED_SAMPLES_H
#define PPROF_ANALYSIS_SHARED_SAMPLES_H

#include "pprof/model/estimate.h"
#include "pprof/table/index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

/* Of each sum there is one for what was allocated and one for what is in use. */
enum shared_samples_side { SIDE_ALLOC, SIDE_INUSE, SIDE_COUNT };

#define OVERLAP_NO_ROW UINT32_MAX

struct shared_samples_part;

/* The profile that is being added. */
struct shared_samples_holder {
	bool counts; /* its column may hold something twice */
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

/* Tells of a profile that will be added to a column. To be called for all profiles before the first is added.
 * 0 or -ENOMEM. */
int shared_samples_expect(struct shared_samples *overlap, const struct profile *profile, size_t column);

/* Says which profile the next samples are of. */
void shared_samples_begin(struct shared_samples *overlap, const struct profile *profile, size_t column);

/* Adds the estimates of one sample, if another profile may have it too. unit: a hash of the stack as it is
 * shown; row: of the traces, or OVERLAP_NO_ROW if it is not selected. 0 or -ENOMEM. */
int shared_samples_add(struct shared_samples *overlap, const struct profile *profile, size_t sample,
    size_t column, uint64_t unit, uint32_t row, const struct estimate sides[SIDE_COUNT]);

/* What has to be added to estimates that were summed up as if they were independent: variance, and a negative
 * number of samples, for those counted more than once. Calls `found` for each cluster that overlaps. */
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
