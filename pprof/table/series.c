/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/table/series.h"

#include <stdlib.h>
#include <string.h>

static void drop_every_second(struct series *series, size_t point_bytes)
{
	char *points = series->points;
	size_t kept = 0;

	for (size_t i = 0; i < series->count; i += 2)
		memmove(points + kept++ * point_bytes, points + i * point_bytes, point_bytes);
	series->count = kept;
	series->step_ns *= 2;
}

void *series_add(struct series *series, const struct series_shape *shape)
{
	if (!series->points) {
		series->points = calloc(shape->points_max, shape->point_bytes);
		series->step_ns = shape->first_step_ns;
	}
	if (!series->points)
		return NULL;
	if (series->count == shape->points_max)
		drop_every_second(series, shape->point_bytes);
	return (char *)series->points + series->count++ * shape->point_bytes;
}

void series_fini(struct series *series)
{
	free(series->points);
	*series = (struct series){0};
}
