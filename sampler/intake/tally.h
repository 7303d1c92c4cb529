/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of what samples stand for, in the fixed point of proto/weight.h: exact, and the same in any order. */
#ifndef SAMPLER_INTAKE_TALLY_H
#define SAMPLER_INTAKE_TALLY_H

#include "proto/weight.h"

#include <stdint.h>

struct tally {
	uint64_t samples, bytes_q8, objects_q16;
};

static inline void tally_add(struct tally *sum, const struct tally *more)
{
	sum->samples += more->samples;
	sum->bytes_q8 += more->bytes_q8;
	sum->objects_q16 += more->objects_q16;
}

/* Adds one sample. */
static inline void tally_count(struct tally *sum, struct weight weight)
{
	const struct tally one = {1, weight.bytes_q8, weight.objects_q16};

	tally_add(sum, &one);
}

/* May wrap: the caller knows whether `less` is part of `sum`. */
static inline struct tally tally_subtract(const struct tally *sum, const struct tally *less)
{
	return (struct tally){sum->samples - less->samples, sum->bytes_q8 - less->bytes_q8,
	    sum->objects_q16 - less->objects_q16};
}

/* `sum` minus `less`; all zero if any part would be negative: the counts may come from a hostile process, or
 * one of them may be older. */
static inline struct tally tally_excess(const struct tally *sum, const struct tally *less)
{
	struct tally more = tally_subtract(sum, less);

	if ((int64_t)more.samples < 0 || (int64_t)more.bytes_q8 < 0 || (int64_t)more.objects_q16 < 0)
		return (struct tally){0};
	return more;
}

#endif
