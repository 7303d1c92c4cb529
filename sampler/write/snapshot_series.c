/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/snapshot_series.h"

#include <stdlib.h>

struct snapshot_series *snapshot_series_new(uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns)
{
	struct snapshot_series *series = calloc(1, sizeof(*series));

	if (!series)
		return NULL;
	series->next_number =
	    1 + (uint32_t)interval_clock_begin(&series->periodic, begin_ns, interval_ns, now_ns);
	oom_watch_init(&series->death);
	return series;
}

void snapshot_series_enlist(struct snapshot_series *series, struct snapshot_series **list)
{
	series->next_series = *list;
	series->link = list;
	if (*list)
		(*list)->link = &series->next_series;
	*list = series;
}

void snapshot_series_free(struct snapshot_series *series)
{
	if (!series)
		return;
	if (series->link)
		*series->link = series->next_series;
	if (series->next_series)
		series->next_series->link = series->link;
	kept_files_fini(&series->kept);
	free(series->heap.peak.path);
	trend_series_fini(&series->heap.trend);
	threshold_watch_free(series->heap.thresholds);
	oom_watch_fini(&series->death);
	free(series);
}
