/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/trend_series.h"

static const struct series_shape shape = {.point_bytes = sizeof(struct trend_point),
    .points_max = TREND_SERIES_POINTS,
    .first_step_ns = INT64_C(5000000000)};

bool trend_series_is_due(const struct trend_series *trend, double time_s)
{
	const struct series *series = &trend->series;
	const struct trend_point *points = series->points;

	return !series->count || time_s - points[series->count - 1].time_s >= (double)series->step_ns / 1e9;
}

void trend_series_note(struct trend_series *trend, const struct trend_point *point)
{
	struct trend_point *added = series_add(&trend->series, &shape);

	if (!added)
		return;
	*added = *point;
	trend->noted++;
}

const struct trend *trend_series_find(struct trend_series *trend)
{
	if (trend->series.count < TREND_POINTS_LEAST)
		return NULL;
	/* Each point that was noted was an occasion to ask, also those that were dropped. */
	if (trend->found_of != trend->noted)
		trend->found =
		    trend_find(trend->series.points, trend->series.count, trend_bar(1, trend->noted));
	trend->found_of = trend->noted;
	return &trend->found;
}

void trend_series_fini(struct trend_series *trend)
{
	series_fini(&trend->series);
	*trend = (struct trend_series){0};
}
