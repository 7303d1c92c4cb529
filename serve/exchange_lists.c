/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_lists.h"

#include "pprof/analysis/trend.h"
#include "pprof/text/json.h"
#include "pprof/text/utf8.h"
#include "serve/exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPARK_POINTS = 64 };

/* ---- points */

static struct api_point point_of(const struct catalog_point *from)
{
	return (struct api_point){.time_ns = from->unix_ns,
	    .value = from->inuse_bytes,
	    .error = from->error_bytes,
	    .samples = NAN,
	    .known = isfinite(from->error_bytes),
	    .allocated = from->allocated_bytes,
	    .rss_bytes = from->rss_bytes};
}

struct api_point *exchange_lists_points(const struct catalog_process *process, size_t *count, size_t most)
{
	size_t all = process->history ? process->history->count : 0, step = most ? all / most + 1 : 1;
	const struct catalog_point *noted = all ? process->history->points : NULL;
	struct api_point *points = calloc(all + 1, sizeof(*points));

	*count = 0;
	for (size_t i = 0; i < all && points; i++)
		if ((all - 1 - i) % step == 0)
			points[(*count)++] = point_of(&noted[i]);
	return points;
}

/* Of one that does not run: its files say it. */
static struct api_point *file_points(const struct catalog_process *process, size_t *count)
{
	struct api_point *points = calloc(process->file_count + 1, sizeof(*points));

	*count = 0;
	for (size_t i = 0; i < process->file_count && points; i++)
		if (catalog_file_is_state(process->files[i]) && process->files[i]->point.time_ns &&
		    !catalog_file_is_last(process->files[i]))
			points[(*count)++] = process->files[i]->point;
	return points;
}

/* A sample stands for as many bytes as the variance says, which is the sum of the samples' squares. */
static struct trend_point trend_point_of(const struct api_point *point)
{
	const double variance = point->error * point->error;
	const double each_bytes = point->value > 0 ? fmax(variance / point->value, 1) : NAN;

	return (struct trend_point){.time_s = (double)point->time_ns / 1e9,
	    .inuse_bytes = point->value,
	    .inuse_variance = variance,
	    .inuse_samples = point->value / each_bytes,
	    .allocated_bytes = point->allocated,
	    .allocated_variance = point->allocated * each_bytes,
	    .allocated_samples = point->allocated / each_bytes};
}

/* The points are thinned out to as many as the test takes. */
static bool growth_of_points(const struct api_point *points, size_t count, struct api_growth *growth)
{
	struct trend_point taken[TREND_POINTS_MOST];
	const size_t step = count / TREND_POINTS_MOST + 1;
	size_t taken_count = 0;

	for (size_t i = (count - 1) % step; i < count; i += step)
		if (points[i].known && points[i].value > 0)
			taken[taken_count++] = trend_point_of(&points[i]);
	const struct trend trend = trend_find(taken, taken_count, trend_bar(1, taken_count));

	*growth = (struct api_growth){.per_hour = trend.bytes_per_s * 3600,
	    .per_hour_error = sqrt(fmax(trend.bytes_per_s_variance, 0)) * 3600};
	return trend.kind == TREND_GROWS;
}

/* Does all that the process has in use grow? Of one that runs, its sampler says it. */
static bool growth_of(const struct catalog_process *process, const struct api_point *points, size_t count,
    struct api_growth *growth)
{
	if (!process->listed)
		return count && growth_of_points(points, count, growth);
	*growth = (struct api_growth){.per_hour = process->listed->growth.bytes_per_hour,
	    .per_hour_error = process->listed->growth.bytes_per_hour_error};
	return isfinite(growth->per_hour);
}

/* ---- processes */

struct row {
	char id[PROFILE_CHOICE_ID_BYTES];
	struct api_growth growth;
	struct api_point *points;
};

void exchange_lists_id(const struct catalog_process *process, char id[PROFILE_CHOICE_ID_BYTES])
{
	const struct catalog_file *newest = profile_choice_newest(process);

	id[0] = '\0';
	if (process->listed)
		snprintf(id, PROFILE_CHOICE_ID_BYTES, "now-%d", (int)process->key.pid);
	else if (newest)
		profile_choice_file_id(id, newest);
}

static void fill_process(const struct catalog_process *from, struct api_process *to, struct row *row)
{
	size_t count;
	const struct api_point *newest;

	row->points =
	    from->listed ? exchange_lists_points(from, &count, SPARK_POINTS) : file_points(from, &count);
	if (!row->points)
		count = 0;
	newest = count ? &row->points[count - 1] : NULL;
	exchange_lists_id(from, row->id);
	*to = (struct api_process){.id = row->id,
	    .pid = from->key.pid,
	    .program = from->program,
	    .name = from->name,
	    .service = from->service,
	    .host = from->host,
	    .session = from->session,
	    .start_ns = from->start_ns,
	    .running = from->listed != NULL,
	    .rss_bytes = from->listed && from->listed->rss_bytes ? (int64_t)from->listed->rss_bytes
	        : newest                                         ? newest->rss_bytes
	                                                         : -1,
	    .profile_count = from->file_count,
	    .points = row->points,
	    .point_count = count,
	    .growth = growth_of(from, row->points, count, &row->growth) ? &row->growth : NULL};
}

static bool write_processes(FILE *out, const struct exchange *exchange)
{
	size_t count;
	const struct catalog_process *processes = catalog_processes(exchange->server->catalog, &count);
	struct api_process *list = calloc(count + 1, sizeof(*list));
	struct row *rows = calloc(count + 1, sizeof(*rows));
	bool made = list && rows;

	for (size_t i = 0; i < count && made; i++)
		fill_process(&processes[i], &list[i], &rows[i]);
	if (made)
		api_processes_write(out, list, count, catalog_has_files(exchange->server->catalog),
		    catalog_has_samplers(exchange->server->catalog));
	for (size_t i = 0; i < count && rows; i++)
		free(rows[i].points);
	free(rows);
	free(list);
	return made;
}

/* ---- profiles */

struct profiles {
	struct api_profile *list;
	char (*ids)[PROFILE_CHOICE_ID_BYTES];
	size_t count;
};

static void add_files(struct profiles *profiles, const struct catalog_process *process)
{
	for (size_t i = 0; i < process->file_count; i++) {
		const struct catalog_file *file = process->files[i];

		profile_choice_file_id(profiles->ids[profiles->count], file);
		profiles->list[profiles->count] = (struct api_profile){.id = profiles->ids[profiles->count],
		    .program = process->program,
		    .name = process->name,
		    .service = process->service,
		    .host = process->host,
		    .cause = file->cause,
		    .kind = catalog_file_kind(file),
		    .pid = process->key.pid,
		    .time_ns = file->time_ns,
		    .duration_ns = file->duration_ns,
		    .bytes = (int64_t)file->bytes};
		profiles->count++;
	}
}

static void add_kept_snapshots(
    struct profiles *profiles, const struct catalog_process *process, const struct snapshots *snapshots)
{
	const struct kept_snapshot *kept;
	size_t count = snapshots_kept(snapshots, &process->key, &kept);

	for (size_t i = 0; i < count; i++) {
		profile_choice_kept_id(profiles->ids[profiles->count], process, &kept[i]);
		profiles->list[profiles->count] = (struct api_profile){.id = profiles->ids[profiles->count],
		    .program = process->program,
		    .name = process->name,
		    .service = process->service,
		    .host = process->host,
		    .cause = "asked for by a client of heaptap serve",
		    .kind = "live",
		    .pid = process->key.pid,
		    .time_ns = kept[i].unix_ns,
		    .bytes = (int64_t)kept[i].profile->length};
		profiles->count++;
	}
}

/* Those of processes that have ended too, beside live ones. */
static bool write_profiles(FILE *out, const struct exchange *exchange)
{
	const struct server *server = exchange->server;
	const struct kept_snapshot *kept;
	size_t count, room = 1;
	const struct catalog_process *processes = catalog_processes(server->catalog, &count),
	                             *end = processes + count;
	struct profiles profiles = {0};
	bool made;

	for (const struct catalog_process *at = processes; at < end; at++)
		room += at->file_count + snapshots_kept(server->snapshots, &at->key, &kept);
	profiles.list = calloc(room, sizeof(*profiles.list));
	profiles.ids = calloc(room, sizeof(*profiles.ids));
	made = profiles.list && profiles.ids;
	for (const struct catalog_process *at = processes; at < end && made; at++) {
		if (!catalog_is_meant(at, &exchange->route))
			continue;
		add_files(&profiles, at);
		add_kept_snapshots(&profiles, at, server->snapshots);
	}
	if (made)
		api_profiles_write(out, profiles.list, profiles.count);
	free(profiles.list);
	free(profiles.ids);
	return made;
}

void exchange_lists(struct exchange *exchange)
{
	bool processes = strcmp(exchange->route.name, "processes") == 0, made;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	made = out && (processes ? write_processes(out, exchange) : write_profiles(out, exchange));
	if (out && fclose(out) == 0 && made) {
		reply_bytes(&exchange->reply, 200, REPLY_JSON, blob_new(text, length));
		return;
	}
	free(text);
	reply_json_error(&exchange->reply, 500, "out of memory");
}

void exchange_lists_written(struct reply *reply, const char *path)
{
	char *text = NULL, clean[BROKER_TEXT_BYTES];
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	struct json json = {.out = out};

	snprintf(clean, sizeof(clean), "%s", path);
	utf8_disarm(clean, strlen(clean));
	if (out) {
		json_object(&json, NULL);
		json_text(&json, "path", clean);
		json_end(&json);
	}
	if (out && fclose(out) == 0)
		reply_bytes(reply, 200, REPLY_JSON, blob_new(text, length));
	else
		reply_json_error(reply, 500, "out of memory");
}
