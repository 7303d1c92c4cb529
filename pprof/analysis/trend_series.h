/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one sum was over time (pprof/table/series.h), and whether it grows (trend.h), for a reader that asks
 * again and again. Pure.
 */
#ifndef PPROF_ANALYSIS_TREND_SERIES_H
#define PPROF_ANALYSIS_TREND_SERIES_H

#include "pprof/analysis/trend.h"
#include "pprof/table/series.h"

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
