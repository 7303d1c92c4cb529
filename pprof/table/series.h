/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points over time, a bounded number of them: when there is no more room every second point is dropped, and
 * from then on half as many are taken. So a series covers all of the time, however long.
 *
 * The caller knows the type of a point and the clock, and asks whether the next point is due. Pure.
 */
#ifndef PPROF_TABLE_SERIES_H
#define PPROF_TABLE_SERIES_H

#include <stddef.h>
#include <stdint.h>

/* All zero at first. */
struct series {
	void *points; /* owned; NULL: none yet */
	size_t count;
	int64_t step_ns; /* between two points; doubles whenever points are dropped */
};

struct series_shape {
	size_t point_bytes, points_max;
	int64_t first_step_ns;
};

/* Returns a new last point for the caller to fill, or NULL if there is no memory. */
void *series_add(struct series *series, const struct series_shape *shape);

void series_fini(struct series *series);

#endif
