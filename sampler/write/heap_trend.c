/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/heap_trend.h"

#include "sampler/write/interval.h"

/* The process' counts are not trusted: any number may be there. */
static double bytes_of(const struct tally *tally)
{
	return (int64_t)tally->bytes_q8 < 0 ? 0 : (double)tally->bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
}

struct trend_point heap_trend_point(const struct region_place *place, uint64_t now_ns)
{
	const struct tally live = region_read_tally(&place->live), all = region_read_tally(&place->allocated);
	const double all_bytes = bytes_of(&all), all_samples = (double)all.samples;

	return (struct trend_point){.time_s = (double)now_ns / 1e9,
	    .inuse_bytes = bytes_of(&live),
	    .inuse_variance = region_live_variance(place),
	    .inuse_samples = (double)live.samples,
	    .allocated_bytes = all_bytes,
	    /* as if all samples stood for the same number of bytes */
	    .allocated_variance = all_samples > 0 ? all_bytes * all_bytes / all_samples : 0,
	    .allocated_samples = all_samples};
}

void heap_trend_note(struct snapshot_series *series, const struct region_place *place, uint64_t now_ns)
{
	if (now_ns - series->periodic.begin_ns < interval_due_ns(INTERVAL_USUAL, 1) ||
	    !trend_series_is_due(&series->heap.trend, (double)now_ns / 1e9))
		return;
	const struct trend_point point = heap_trend_point(place, now_ns);
	trend_series_note(&series->heap.trend, &point);
}
