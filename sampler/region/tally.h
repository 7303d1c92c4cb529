/* SPDX-License-Identifier: Apache-2.0 */
/* What samples stand for, added up, in the fixed point of proto/weight.h: sums are exact and the same in any
 * order. */
#ifndef SAMPLER_REGION_TALLY_H
#define SAMPLER_REGION_TALLY_H

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

/* May wrap: the caller knows whether `less` is part of `sum`. */
static inline struct tally tally_subtract(const struct tally *sum, const struct tally *less)
{
	return (struct tally){sum->samples - less->samples, sum->bytes_q8 - less->bytes_q8,
	    sum->objects_q16 - less->objects_q16};
}

#endif
