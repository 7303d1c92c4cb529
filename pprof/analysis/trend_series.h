/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one sum was over time, for who reads it again and again: a bounded number of points, and whether they
 * grow (trend.h). When there is no more room every second point is dropped, and from then on half as many are
 * taken. So it covers all of the time, however long. Pure.
 */
#ifndef PPROF_ANALYSIS_TREND_SERIES_H
#define PPROF_ANALYSIS_TREND_SERIES_H

#include "pprof/analysis/trend.h"

enum { TREND_SERIES_POINTS = 48 };

/* Zeroed at first. */
struct trend_series {
	struct trend_point *points; /* owned; NULL: none yet */
	size_t count;
	size_t noted;   /* points that were ever taken */
	double every_s; /* between two of them */
	struct trend found;
	size_t found_of; /* is of so many that were noted */
};

/* The time of the points is that of any clock that does not jump. */
bool trend_series_is_due(const struct trend_series *series, double time_s);

/* Takes a point that is due. Without memory it does not. */
void trend_series_note(struct trend_series *series, const struct trend_point *point);

/* `since` and `until` are indexes of series->points. NULL: there are too few of them to know. */
const struct trend *trend_series_find(struct trend_series *series);

void trend_series_fini(struct trend_series *series);

#endif
