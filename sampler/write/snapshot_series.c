/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/snapshot_series.h"

#include "pprof/table/array.h"
#include "pprof/text/text.h"
#include "sampler/write/sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the request */

static bool is_asked(enum request_state state)
{
	return state == REQUEST_ASKED || state == REQUEST_WRITING_ASKED;
}

static bool is_writing(enum request_state state)
{
	return state == REQUEST_WRITING || state == REQUEST_WRITING_ASKED;
}

/* The drawing in the header, and nothing else. */
static enum request_state next(enum request_state state, enum request_event event)
{
	switch (event) {
	case REQUEST_ON_ASK:
		return is_writing(state) ? REQUEST_WRITING_ASKED : REQUEST_ASKED;
	case REQUEST_ON_DUE:
		return state == REQUEST_NONE ? REQUEST_DUE : state;
	case REQUEST_ON_NOT_DUE:
		return state == REQUEST_DUE ? REQUEST_NONE : state;
	case REQUEST_ON_TAKE:
		return state == REQUEST_DUE || state == REQUEST_ASKED ? REQUEST_WRITING : state;
	case REQUEST_ON_BESIDE:
		return is_asked(state) ? REQUEST_WRITING_ASKED : REQUEST_WRITING;
	case REQUEST_ON_DROP:
		return is_writing(state) ? REQUEST_WRITING : REQUEST_NONE;
	case REQUEST_ON_WRITTEN:
		return state == REQUEST_WRITING      ? REQUEST_NONE
		    : state == REQUEST_WRITING_ASKED ? REQUEST_ASKED
		                                     : state;
	}
	return state;
}

void snapshot_request_step(struct snapshot_request *request, enum request_event event)
{
	request->state = next(request->state, event);
	if (!is_asked(request->state))
		request->by = 0;
}

bool snapshot_request_is_asked(const struct snapshot_request *request)
{
	return is_asked(request->state);
}

bool snapshot_request_ask(struct snapshot_request *request, enum snapshot_by by, const char *cause,
    const char *name, uint64_t asker)
{
	if (asker && request->asker_count == SNAPSHOT_ASKERS)
		return false;
	if (asker)
		request->askers[request->asker_count++] = asker;
	if (!snapshot_request_is_asked(request)) {
		snprintf(request->cause, sizeof(request->cause), "%s", cause);
		snprintf(request->name, sizeof(request->name), "%s", name ? name : "");
	} else if (by == SNAPSHOT_BY_THRESHOLD) {
		text_append(request->cause, sizeof(request->cause), "; %s", cause);
	}
	snapshot_request_step(request, REQUEST_ON_ASK);
	request->by |= by;
	return true;
}

uint32_t snapshot_request_take_askers(struct snapshot_request *request, uint64_t askers[SNAPSHOT_ASKERS])
{
	const uint32_t count = request->asker_count;

	memcpy(askers, request->askers, sizeof(request->askers));
	request->asker_count = 0;
	return count;
}

void snapshot_request_forget(struct snapshot_request *request, uint64_t asker)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < request->asker_count; i++)
		if (request->askers[i] != asker)
			request->askers[kept++] = request->askers[i];
	request->asker_count = kept;
}

/* ---- the files that are kept */

static void free_paths(struct kept_snapshot *snapshot)
{
	while (snapshot->path_count)
		free(snapshot->paths[--snapshot->path_count]);
}

void kept_files_fini(struct kept_files *files)
{
	while (files->count)
		free_paths(&files->snapshots[--files->count]);
	free(files->snapshots);
	*files = (struct kept_files){0};
}

/* There must be one. */
static void remove_oldest(struct kept_files *files, bool by_threshold, const struct sink *sink)
{
	struct kept_snapshot *oldest = files->snapshots;

	while (oldest->by_threshold != by_threshold)
		oldest++;
	for (size_t i = 0; i < oldest->path_count; i++)
		sink_remove_file(sink, oldest->paths[i]);
	free_paths(oldest);
	files->count--;
	memmove(oldest, oldest + 1, (size_t)(files->snapshots + files->count - oldest) * sizeof(*oldest));
}

void kept_files_add(struct kept_files *files, const char *const *paths, size_t path_count, bool by_threshold,
    size_t keep, const struct sink *sink)
{
	struct kept_snapshot snapshot = {.by_threshold = by_threshold};
	size_t alike = 0;

	if (!keep ||
	    array_reserve(&files->snapshots, &files->capacity, files->count + 1, sizeof(*files->snapshots)) !=
	        0)
		return;
	for (size_t i = 0; i < path_count && i < SNAPSHOT_FILES; i++) {
		char *path = paths[i] && sink_has_file(sink, paths[i]) ? strdup(paths[i]) : NULL;

		if (path)
			snapshot.paths[snapshot.path_count++] = path;
	}
	if (!snapshot.path_count)
		return;
	files->snapshots[files->count++] = snapshot;
	for (size_t i = 0; i < files->count; i++)
		alike += files->snapshots[i].by_threshold == by_threshold;
	for (; alike > keep; alike--)
		remove_oldest(files, by_threshold, sink);
}

/* ---- the series */

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

/* ---- the trend */

/* The process' counts are not trusted: any number may be there. */
static double bytes_of(const struct tally *tally)
{
	return (int64_t)tally->bytes_q8 < 0 ? 0 : (double)tally->bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
}

struct trend_point snapshot_series_trend_point(const struct region_place *place, uint64_t now_ns)
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

void snapshot_series_note_trend(
    struct snapshot_series *series, const struct region_place *place, uint64_t now_ns)
{
	if (now_ns - series->periodic.begin_ns < interval_due_ns(INTERVAL_USUAL, 1) ||
	    !trend_series_is_due(&series->heap.trend, (double)now_ns / 1e9))
		return;
	const struct trend_point point = snapshot_series_trend_point(place, now_ns);
	trend_series_note(&series->heap.trend, &point);
}
