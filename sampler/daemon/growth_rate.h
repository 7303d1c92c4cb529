/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a process' heap grows: a line through its last readings, with the error of its slope. Pure. */
#ifndef SAMPLER_DAEMON_GROWTH_RATE_H
#define SAMPLER_DAEMON_GROWTH_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum { GROWTH_RATE_POINTS = 48, GROWTH_RATE_LEAST = 3 };

/* Readings at growing distances: when there is no more room, every second one is dropped, and from then on half
 * as many are kept. Zeroed at first. */
struct growth_rate {
	struct growth_rate_point {
		uint64_t time_ns;
		double bytes, variance; /* of the sampling error */
	} points[GROWTH_RATE_POINTS];
	uint32_t count;
	uint64_t every_ns; /* between readings that are kept; 0: the first decides */
};

void growth_rate_note(struct growth_rate *growth, uint64_t now_ns, double bytes, double variance);

/* The slope in bytes per hour (NaN: too few readings), and whether it is more than two standard errors from 0.
 * The error is that of ordinary least squares, from the residuals, or what the sampling error alone would give,
 * whichever is more. */
void growth_rate_fit(const struct growth_rate *growth, double *bytes_per_hour, bool *significant);

#endif
