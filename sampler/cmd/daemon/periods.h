/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling periods of all program runs: those of the rules, or periods that give the samples per hour
 * that the rules want. The load limiter raises both (load_limiter.h). */
#ifndef SAMPLER_CMD_DAEMON_PERIODS_H
#define SAMPLER_CMD_DAEMON_PERIODS_H

#include <stdint.h>

struct daemon;

/* ---- samples per hour */

enum {
	PERIODS_RATE_ENOUGH = 16,
	PERIODS_RATE_STEP = 4, /* the period changes by at most this factor at a time */
};

struct periods_rate {
	uint64_t since_ns, samples; /* when the period was last judged, and the number of samples then */
};

/* The factor to multiply a period by, so that a program gives so many samples per hour: they follow how much
 * the program allocates. Few samples say nothing about the rate. So the period stays until 16 samples came,
 * or until 16 should have come; that tells the rate to a quarter. 0 if it is too early to say: then *rate
 * stays as it is. Pure. */
double periods_factor(struct periods_rate *rate, uint64_t samples, uint64_t now_ns, double per_hour);

/* ---- the program runs of a daemon */

/* Sets the periods of program runs whose rule has a period. */
void periods_scale(struct daemon *daemon);

/* Compares the daemon's load with its limits, when it is time to, and changes all periods if that is
 * necessary. */
void periods_limit_load(struct daemon *daemon, uint64_t now_ns);

/* For services whose rule has a number of samples per hour: changes the periods to come nearer to it. */
void periods_tune(struct daemon *daemon);

#endif
