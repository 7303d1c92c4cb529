/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does one sum of bytes in use grow? docs/design/growth.md explains the test, its false alarms and its
 * power.
 *
 * A sum is known at some points of time: what is in use, and what has been allocated since the recording
 * began. Two kinds of evidence count.
 *
 *   kept    Of what was allocated since a point, at least half is still in use, and more samples came than
 *           went than chance explains: in a steady program each of these samples is one that came or one
 *           that went with equal chance. The rise has several steps, so that one batch of work is not taken
 *           for growth.
 *   order   Later points lie above earlier ones (Mann, Econometrica 13, 1945; Kendall, Rank Correlation
 *           Methods, 1948). Only points count whose distance is twice the mean life of a block: blocks in
 *           use are what is allocated in a second, times their mean life in seconds (Little, Operations
 *           Research 9, 1961).
 *
 * Pure functions.
 */
#ifndef PPROF_ANALYSIS_TREND_H
#define PPROF_ANALYSIS_TREND_H

#include <stdbool.h>
#include <stddef.h>

enum {
	TREND_POINTS_LEAST = 4,
	TREND_POINTS_MOST = 128, /* the caller thins out longer series */
};

/* The chance that a recording of a steady program is said to grow, however often the question is asked. */
#define TREND_FALSE_ALARMS 0.005

struct trend_point {
	double time_s;
	double inuse_bytes, inuse_variance, inuse_samples;
	/* Since the recording began, so they never fall. NaN: not known. */
	double allocated_bytes, allocated_variance, allocated_samples;
};

enum trend_kind {
	TREND_NONE,
	TREND_GROWS, /* still */
	TREND_ROSE,  /* and stays where it is since the point `until` */
};

struct trend {
	enum trend_kind kind;
	size_t since, until;                      /* points; of TREND_GROWS `until` is the last */
	double bytes, variance;                   /* of the rise between them */
	double bytes_per_s, bytes_per_s_variance; /* of TREND_GROWS; else 0 */
};

/* "grows", "rose", "steady" */
const char *trend_kind_name(enum trend_kind kind);

/* The chance that a rise must be below. rows: how many sums are asked about at once. points: how many there
 * are, for each point was an occasion to ask. */
double trend_bar(double rows, size_t points);

/* Have enough samples come for the test to be able to pass this bar? A sum with fewer cannot raise a false
 * alarm, and need not be counted among the rows (Tarone, Biometrics 46, 1990). */
bool trend_is_askable(const struct trend_point *points, size_t count, double bar);

/* At most TREND_POINTS_MOST points, in the order of time. */
struct trend trend_find(const struct trend_point *points, size_t count, double bar);

#endif
