/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a number of bytes in use grow? docs/design/growth.md explains the test, its false alarms and its
 * power.
 *
 * The input is a series of points: the time, the bytes in use, and the bytes allocated since the recording
 * began. Growth is reported if one of two tests finds it.
 *
 *   kept    At least half of what was allocated since a point is still in use. (A fifth is enough if the
 *           bytes in use have never fallen.) And more samples came since that point than went, by more than
 *           chance explains: in a steady program as many go as come. The rise must have several steps: one
 *           batch of work is no growth.
 *   order   Later points are higher than earlier points (Mann, Econometrica 13, 1945; Kendall, Rank
 *           Correlation Methods, 1948). Points count only if they are at least two mean lives of a block
 *           apart. The mean life in seconds is the bytes in use divided by the bytes allocated in a second
 *           (Little, Operations Research 9, 1961). A weaker order is enough if a straight line through the
 *           points, too, rises by more than chance explains.
 *
 * Pure functions.
 */
#ifndef PPROF_ANALYSIS_TREND_H
#define PPROF_ANALYSIS_TREND_H

#include <stdbool.h>
#include <stddef.h>

#include "pprof/table/series.h"

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
	TREND_ROSE,  /* flat since the point `until` */
};

struct trend {
	enum trend_kind kind;
	size_t since, until;                      /* points; of TREND_GROWS `until` is the last */
	double bytes, variance;                   /* of the rise between them */
	double bytes_per_s, bytes_per_s_variance; /* of TREND_GROWS; else 0 */
};

/* "grows", "rose", "steady" */
const char *trend_kind_name(enum trend_kind kind);

/* A rise is reported only if its probability in a steady program is below the result. rows: how many rows are
 * tested at once. points: how many points there are, since each was an occasion to test. */
double trend_bar(double rows, size_t points);

/* Could the test report a rise at all? With too few samples it cannot, so such a row raises no false alarm
 * and does not count in `rows` (Tarone, Biometrics 46, 1990). */
bool trend_is_askable(const struct trend_point *points, size_t count, double bar);

/* At most TREND_POINTS_MOST points, in the order of time. */
struct trend trend_find(const struct trend_point *points, size_t count, double bar);

/* ---- what one sum was over time (series.h), and whether it grows, for a reader that asks again and again */

enum { TREND_SERIES_POINTS = 48 };

/* All zero at first. */
struct trend_series {
	struct series series; /* of struct trend_point */
	size_t noted;         /* points that were ever taken, the dropped ones too */
	struct trend found;
	size_t found_of; /* `noted` when `found` was computed */
};

/* The time of the points is that of any clock that does not jump. */
bool trend_series_is_due(const struct trend_series *trend, double time_s);

/* Takes a point that is due. Without memory the point is lost. */
void trend_series_note(struct trend_series *trend, const struct trend_point *point);

/* `since` and `until` are indexes of the points. NULL if there are too few of them to know. */
const struct trend *trend_series_find(struct trend_series *trend);

void trend_series_fini(struct trend_series *trend);

#endif
