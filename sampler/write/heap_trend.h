/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has in use over time, by its own counts: this tells whether the heap grows (trend.h).
 * */
#ifndef SAMPLER_WRITE_HEAP_TREND_H
#define SAMPLER_WRITE_HEAP_TREND_H

#include "sampler/intake/region.h"
#include "sampler/write/snapshot_series.h"

/* The counts of the place as a point of the series. now_ns: monotonic. */
struct trend_point heap_trend_point(const struct region_place *place, uint64_t now_ns);

/* Adds a point if one is due: call it about once a second. The first point is due with the first snapshot. */
void heap_trend_note(struct snapshot_series *series, const struct region_place *place, uint64_t now_ns);

#endif
