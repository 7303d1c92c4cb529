/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a profile's drop_frames and keep_frames: removes frames of the allocator and what they called.
 *
 * The same rule as google/pprof's profile/prune.go, so that our sums equal its sums. Going inwards from the
 * outermost frame: after the first frame that stays, the first one whose function matches drop_frames (and
 * not keep_frames) is cut off with everything inside it. If only some inlined functions of a location match,
 * the location stays with the others. Nothing is cut before a frame that stays, so no stack becomes empty.
 * Expressions that do not compile, or that take more than two seconds, cut nothing.
 */
#ifndef PPROF_ANALYSIS_PRUNE_H
#define PPROF_ANALYSIS_PRUNE_H

#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_sample;

struct prune {
	/* by location id: number of inner lines to remove, or PRUNE_WHOLE; NULL: nothing is removed */
	uint32_t *cut;
};

#define PRUNE_WHOLE UINT32_MAX

/* 0 or -ENOMEM. */
int prune_init(struct prune *prune, const struct profile *profile);
void prune_fini(struct prune *prune);

/* How many locations at the inner end of the sample's stack are cut off. */
size_t prune_stack(const struct prune *prune, const struct profile_sample *sample);

/* How many lines are cut off at the inner end of a location that stays. */
uint32_t prune_lines(const struct prune *prune, uint32_t location);

#endif
