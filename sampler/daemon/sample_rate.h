/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The period of a service that is to have so many samples an hour: it follows what the program allocates.
 * Of few samples nothing follows, so the period stays until either as many came, or as many should have come,
 * as make a rate: 16, which is right to a quarter. Pure.
 */
#ifndef SAMPLER_DAEMON_SAMPLE_RATE_H
#define SAMPLER_DAEMON_SAMPLE_RATE_H

#include <stdint.h>

enum {
	SAMPLE_RATE_ENOUGH = 16,
	SAMPLE_RATE_STEP = 4, /* the period changes by this factor at most, at a time */
};

struct sample_rate {
	uint64_t since_ns, samples; /* when the period was last judged, and how many there were then */
};

/* The factor by which the period is to be multiplied; 0: it is too early to say, and *rate stays as it is. */
double sample_rate_judge(struct sample_rate *rate, uint64_t samples, uint64_t now_ns, double per_hour);

#endif
