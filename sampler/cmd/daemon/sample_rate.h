/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The period of a service that is to have a certain number of samples an hour: it follows how much the
 * program allocates. Few samples say nothing about the rate. So the period stays until 16 samples came, or
 * until 16 should have come; that tells the rate to a quarter. Pure.
 */
#ifndef SAMPLER_CMD_DAEMON_SAMPLE_RATE_H
#define SAMPLER_CMD_DAEMON_SAMPLE_RATE_H

#include <stdint.h>

enum {
	SAMPLE_RATE_ENOUGH = 16,
	SAMPLE_RATE_STEP = 4, /* the period changes by at most this factor at a time */
};

struct sample_rate {
	uint64_t since_ns, samples; /* when the period was last judged, and the number of samples then */
};

/* The factor to multiply the period by. 0 if it is too early to say: then *rate stays as it is. */
double sample_rate_judge(struct sample_rate *rate, uint64_t samples, uint64_t now_ns, double per_hour);

#endif
