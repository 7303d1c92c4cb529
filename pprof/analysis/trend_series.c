/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/trend_series.h"

#include <stdlib.h>
#include <string.h>

static const double first_every_s = 5;

bool trend_series_is_due(const struct trend_series *series, double time_s)
{
	return !series->count || time_s - series->points[series->count - 1].time_s >= series->every_s;
}

static void thin(struct trend_series *series)
{
	size_t kept = 0;

	for (size_t i = 0; i < series->count; i += 2)
		series->points[kept++] = series->points[i];
	series->count = kept;
	series->every_s *= 2;
}

void trend_series_note(struct trend_series *series, const struct trend_point *point)
{
	if (!series->points) {
		series->points = calloc(TREND_SERIES_POINTS, sizeof(*series->points));
		series->every_s = first_every_s;
	}
	if (!series->points)
		return;
	if (series->count == TREND_SERIES_POINTS)
		thin(series);
	series->points[series->count++] = *point;
	series->noted++;
}

const struct trend *trend_series_find(struct trend_series *series)
{
	if (series->count < TREND_POINTS_LEAST)
		return NULL;
	/* Each point that was noted was an occasion to ask, also those that were dropped. */
	if (series->found_of != series->noted)
		series->found = trend_find(series->points, series->count, trend_bar(1, series->noted));
	series->found_of = series->noted;
	return &series->found;
}

void trend_series_fini(struct trend_series *series)
{
	free(series->points);
	memset(series, 0, sizeof(*series));
}
