/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook's floating-point arithmetic, all of it: proto/weight.h in an environment of its own.
 *
 * A program may have unmasked exceptions (feenableexcept), so that an inexact result of ours would end it;
 * may round in another direction, so that our sums and the sampler's would differ; and may look at the flags
 * that its own operations have raised. So each of these functions saves the thread's environment, computes in
 * the one that a program begins with, and restores the same bits. In between it calls nothing.
 */
#ifndef PRELOAD_WEIGH_H
#define PRELOAD_WEIGH_H

#include <stdbool.h>
#include <stdint.h>

/* A sample's weight as it is in the shared sums. */
struct weighed {
	uint64_t bytes_q8, objects_q16;
	uint64_t bytes_variance; /* in the units of its sum, weight_fixed_bytes */
	bool large;              /* which of the two sums that is, weight_is_large */
};

/* weight_of_part. left_bytes UINT64_MAX: the whole sample. */
struct weighed weigh(uint64_t size_bytes, uint64_t left_bytes, uint64_t period_bytes);

/* weight_interval. */
uint64_t weigh_interval(uint64_t random, uint64_t period_bytes);

#endif
