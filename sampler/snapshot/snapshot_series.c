/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/snapshot_series.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "pprof/text/text.h"
#include "sampler/snapshot/schedule.h"
#include "sampler/snapshot/sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many were due until then, and when the next one is. */
static uint64_t count_until(const struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns)
{
	return now_ns > series->begin_ns ? schedule_count(interval_ns, now_ns - series->begin_ns) : 0;
}

static uint64_t due_ns(const struct snapshot_series *series, uint64_t interval_ns, uint64_t number)
{
	const uint64_t age_ns = schedule_due_ns(interval_ns, number);

	return age_ns < UINT64_MAX - series->begin_ns ? series->begin_ns + age_ns : UINT64_MAX;
}

/* The configuration may change it. */
static void set_interval(struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns)
{
	series->interval_ns = interval_ns;
	series->due_ns = due_ns(series, interval_ns, count_until(series, interval_ns, now_ns) + 1);
}

struct snapshot_series *snapshot_series_new(uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns)
{
	struct snapshot_series *series = calloc(1, sizeof(*series));

	if (!series)
		return NULL;
	series->begin_ns = begin_ns;
	series->next = 1 + (uint32_t)count_until(series, interval_ns, now_ns);
	set_interval(series, interval_ns, now_ns);
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
	for (size_t i = 0; i < series->kept_count; i++) {
		free(series->kept[i].path);
		free(series->kept[i].delta_path);
	}
	free(series->kept);
	free(series->peak.path);
	trend_series_fini(&series->trend);
	oom_watch_fini(&series->death);
	threshold_watch_free(series->thresholds);
	free(series);
}

/* ---- when */

enum snapshot_series_due snapshot_series_look(
    struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns)
{
	if (interval_ns != series->interval_ns)
		set_interval(series, interval_ns, now_ns);
	if (!interval_ns || now_ns < series->due_ns)
		return SNAPSHOT_SERIES_NOT_DUE;
	const uint64_t until_now = count_until(series, interval_ns, now_ns);
	const uint64_t late = until_now - count_until(series, interval_ns, series->due_ns);
	series->skipped += late;
	if (late)
		series->due_ns = due_ns(series, interval_ns, until_now);
	return SNAPSHOT_SERIES_DUE;
}

void snapshot_series_advance(struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns)
{
	series->due_ns = due_ns(series, interval_ns, count_until(series, interval_ns, series->due_ns) + 1);
	if (series->due_ns <= now_ns)
		(void)snapshot_series_look(series, interval_ns, now_ns);
}

bool snapshot_series_want(struct snapshot_series *series, const char *cause, const char *name, uint64_t asker)
{
	if (asker && series->asker_count == SNAPSHOT_ASKERS)
		return false;
	if (asker)
		series->askers[series->asker_count++] = asker;
	if (!series->wanted) {
		snprintf(series->wanted_cause, sizeof(series->wanted_cause), "%s", cause);
		snprintf(series->wanted_name, sizeof(series->wanted_name), "%s", name ? name : "");
	}
	series->wanted = true;
	series->wanted_by_hand = series->wanted_by_hand || !name;
	return true;
}

void snapshot_series_want_by_rule(struct snapshot_series *series, const struct threshold_crossing *crossing)
{
	if (series->wanted)
		text_append(series->wanted_cause, sizeof(series->wanted_cause), "; %s", crossing->cause);
	else
		snapshot_series_want(series, crossing->cause, crossing->name, 0);
	series->wanted_by_a_rule = true;
}

bool snapshot_series_allows(struct snapshot_series *series, uint64_t now_ns)
{
	static const struct throttle_rate rate = {.burst = 16, .units = 1, .step_ns = CLOCK_NS_PER_S};
	const bool allowed = throttle_take(&series->own_requests, &rate, now_ns);

	series->refused += !allowed;
	return allowed;
}

/* ---- files */

/* The oldest of one kind, of which there is one. */
static void remove_oldest(struct snapshot_series *series, bool by_a_rule, const struct sink *sink)
{
	size_t begin = 0, end;

	while (series->kept[begin].by_a_rule != by_a_rule)
		begin++;
	end = begin;
	do {
		const struct snapshot_series_file *file = &series->kept[end];

		sink_remove_file(sink, file->path);
		if (file->delta_path)
			sink_remove_file(sink, file->delta_path);
		free(file->path);
		free(file->delta_path);
	} while (++end < series->kept_count && !series->kept[end].first);
	memmove(
	    &series->kept[begin], &series->kept[end], (series->kept_count - end) * sizeof(series->kept[0]));
	series->kept_count -= end - begin;
}

int snapshot_series_keep(struct snapshot_series *series, const struct snapshot_series_file *file, size_t keep,
    const struct sink *sink)
{
	size_t snapshots = 0;

	if (!keep)
		return 0;
	if (array_reserve(
	        &series->kept, &series->kept_capacity, series->kept_count + 1, sizeof(*series->kept)) != 0)
		return -ENOMEM;
	struct snapshot_series_file copy = *file;
	copy.path = strdup(file->path);
	copy.delta_path = file->delta_path ? strdup(file->delta_path) : NULL;
	if (!copy.path)
		return -ENOMEM;
	series->kept[series->kept_count++] = copy;
	for (size_t i = 0; i < series->kept_count; i++)
		snapshots += series->kept[i].first && series->kept[i].by_a_rule == file->by_a_rule;
	for (; snapshots > keep; snapshots--)
		remove_oldest(series, file->by_a_rule, sink);
	return 0;
}
