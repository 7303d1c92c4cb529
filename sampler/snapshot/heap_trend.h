/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has in use over time, as it counts itself: for what grows (trend_series.h). */
#ifndef SAMPLER_SNAPSHOT_HEAP_TREND_H
#define SAMPLER_SNAPSHOT_HEAP_TREND_H

#include "sampler/region/region.h"
#include "sampler/snapshot/snapshot_series.h"

/* Sums of the place as a point of time. now_ns: monotonic. */
struct trend_point heap_trend_point(const struct region_place *place, uint64_t now_ns);

/* To be called about once a second: takes a point when one is due, the first with the first snapshot. */
void heap_trend_note(struct snapshot_series *series, const struct region_place *place, uint64_t now_ns);

#endif
