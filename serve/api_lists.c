/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_lists.h"

#include "pprof/analysis/trend.h"
#include "pprof/text/json.h"
#include "serve/endpoint_list.h"
#include "serve/process_profiles.h"
#include "serve/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPARK_POINTS = 64 };

/* ---- JSON of plain structs */

static void write_null(struct json *json, const char *key)
{
	json_number(json, key, NAN, 0);
}

static void write_bytes(struct json *json, const char *key, int64_t bytes)
{
	if (bytes >= 0)
		json_integer(json, key, bytes);
	else
		write_null(json, key);
}

static void write_point(struct json *json, const struct api_point *point)
{
	json_integer(json, "time_ns", point->time_ns);
	json_number(json, "inuse", point->value, 0);
	if (point->known) {
		json_number(json, "error", point->error, 1);
		json_number(json, "samples", point->samples, 1);
	} else {
		write_null(json, "error");
		write_null(json, "samples");
	}
	write_bytes(json, "rss", point->rss_bytes);
}

/* At most SPARK_POINTS points, evenly spread, with the last one. */
static void write_spark(struct json *json, const struct api_process *process)
{
	const size_t count = process->point_count;
	const size_t step = count / SPARK_POINTS + 1;

	json_array(json, "points");
	for (size_t i = 0; i < count; i++) {
		if ((count - 1 - i) % step)
			continue;
		json_object(json, NULL);
		write_point(json, &process->points[i]);
		json_end(json);
	}
	json_end(json);
}

static void write_growth(struct json *json, const struct api_growth *growth)
{
	if (!growth) {
		write_null(json, "growth_per_hour");
		return;
	}
	json_number(json, "growth_per_hour", growth->per_hour, 0);
	json_number(json, "growth_error", growth->per_hour_error, 1);
}

static void write_process(struct json *json, const struct api_process *process)
{
	const struct api_point *newest =
	    process->point_count ? &process->points[process->point_count - 1] : NULL;

	json_text(json, "id", process->id);
	json_integer(json, "pid", process->pid);
	json_text(json, "program", process->program);
	json_text(json, "name", process->name);
	json_text(json, "service", process->service);
	json_text(json, "host", process->host);
	json_text(json, "session", process->session);
	json_integer(json, "start_ns", process->start_ns);
	json_boolean(json, "running", process->running);
	json_integer(json, "profiles", (int64_t)process->profile_count);
	if (newest) {
		json_integer(json, "time_ns", newest->time_ns);
		json_number(json, "inuse", newest->value, 0);
	} else {
		write_null(json, "inuse");
	}
	if (newest && newest->known) {
		json_number(json, "error", newest->error, 1);
		json_number(json, "samples", newest->samples, 1);
	} else {
		write_null(json, "error");
	}
	write_bytes(json, "rss", process->rss_bytes);
	write_growth(json, process->growth);
}

void api_lists_write_processes(
    FILE *out, const struct api_process *processes, size_t count, bool from_files, bool from_samplers)
{
	struct json json = {.out = out};

	json_object(&json, NULL);
	json_text(&json, "heaptap", HEAPTAP_VERSION);
	json_boolean(&json, "files", from_files);
	json_boolean(&json, "samplers", from_samplers);
	json_array(&json, "processes");
	for (size_t i = 0; i < count; i++) {
		json_object(&json, NULL);
		write_process(&json, &processes[i]);
		write_spark(&json, &processes[i]);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

struct api_profile {
	const char *id, *program, *name, *service, *host, *cause;
	const char *kind; /* "live", "peak", "delta", or the event it is of */
	pid_t pid;
	int64_t time_ns, duration_ns, bytes;
};

/* {"profiles": [...]} */
static void write_profile_list(FILE *out, const struct api_profile *profiles, size_t count)
{
	struct json json = {.out = out};

	json_object(&json, NULL);
	json_text(&json, "heaptap", HEAPTAP_VERSION);
	json_array(&json, "profiles");
	for (size_t i = 0; i < count; i++) {
		const struct api_profile *profile = &profiles[i];

		json_object(&json, NULL);
		json_text(&json, "id", profile->id);
		json_text(&json, "kind", profile->kind);
		json_integer(&json, "pid", profile->pid);
		json_text(&json, "program", profile->program);
		json_text(&json, "name", profile->name);
		json_text(&json, "service", profile->service);
		json_text(&json, "host", profile->host);
		json_integer(&json, "time_ns", profile->time_ns);
		json_integer(&json, "duration_ns", profile->duration_ns);
		json_text(&json, "cause", profile->cause);
		json_integer(&json, "bytes", profile->bytes);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

void api_lists_write_timeline(FILE *out, const struct api_process *process, const struct api_query *query)
{
	struct json json = {.out = out};
	const enum measure_kind kind = query->sorted ? query->kind : MEASURE_INUSE;
	const bool bytes = kind == MEASURE_INUSE || kind == MEASURE_ALLOC;

	json_object(&json, NULL);
	json_text(&json, "heaptap", HEAPTAP_VERSION);
	json_object(&json, "process");
	write_process(&json, process);
	json_end(&json);
	json_text(&json, "type", traces_kind_word(kind));
	json_text(&json, "unit", bytes ? "bytes" : "count");
	json_array(&json, "points");
	for (size_t i = 0; i < process->point_count; i++) {
		json_object(&json, NULL);
		write_point(&json, &process->points[i]);
		json_text(&json, "id", process->points[i].id);
		json_text(&json, "cause", process->points[i].cause);
		if (process->is_sum) {
			json_integer(&json, "processes", (int64_t)process->points[i].processes);
			json_integer(&json, "missing", (int64_t)process->points[i].missing);
		}
		json_end(&json);
	}
	json_end(&json);
	json_boolean(&json, "errors_are_upper_limits", process->is_sum);
	json_end(&json);
}

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

struct api_point *api_lists_points(const struct catalog_process *process, size_t *count, size_t most)
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

/* The points of a process that does not run: its files say them. */
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

/* A sample stands for variance / value bytes, since the variance is the sum of the samples' squares. */
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

/* Leaves out points until there are as few as the test takes. */
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

/* Does all that the process has in use grow? If the process runs, its sampler says so. */
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
	char id[TASK_ID_BYTES];
	struct api_growth growth;
	struct api_point *points;
};

void api_lists_id(const struct catalog_process *process, char id[TASK_ID_BYTES])
{
	const struct catalog_file *newest = process_profiles_newest(process);

	id[0] = '\0';
	if (process->listed)
		snprintf(id, TASK_ID_BYTES, "now-%d", (int)process->key.pid);
	else if (newest)
		process_profiles_file_id(id, newest);
}

static void fill_process(const struct catalog_process *from, struct api_process *to, struct row *row)
{
	size_t count;
	const struct api_point *newest;

	row->points = from->listed ? api_lists_points(from, &count, SPARK_POINTS) : file_points(from, &count);
	if (!row->points)
		count = 0;
	newest = count ? &row->points[count - 1] : NULL;
	api_lists_id(from, row->id);
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

static bool write_processes(FILE *out, const struct request *request)
{
	size_t count;
	const struct catalog_process *processes = catalog_processes(request->server->catalog, &count);
	struct api_process *list = calloc(count + 1, sizeof(*list));
	struct row *rows = calloc(count + 1, sizeof(*rows));
	bool made = list && rows;

	for (size_t i = 0; i < count && made; i++)
		fill_process(&processes[i], &list[i], &rows[i]);
	if (made)
		api_lists_write_processes(out, list, count, catalog_has_files(request->server->catalog),
		    catalog_has_samplers(request->server->catalog));
	for (size_t i = 0; i < count && rows; i++)
		free(rows[i].points);
	free(rows);
	free(list);
	return made;
}

/* ---- profiles */

struct profiles {
	struct api_profile *list;
	char (*ids)[TASK_ID_BYTES];
	size_t count;
};

static void add_files(struct profiles *profiles, const struct catalog_process *process)
{
	for (size_t i = 0; i < process->file_count; i++) {
		const struct catalog_file *file = process->files[i];

		process_profiles_file_id(profiles->ids[profiles->count], file);
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
		process_profiles_kept_id(profiles->ids[profiles->count], process, &kept[i]);
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

/* Profiles of ended processes too, even if live processes are meant. */
static bool write_profiles(FILE *out, const struct request *request)
{
	const struct server *server = request->server;
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
		if (!catalog_is_meant(at, &request->route))
			continue;
		add_files(&profiles, at);
		add_kept_snapshots(&profiles, at, server->snapshots);
	}
	if (made)
		write_profile_list(out, profiles.list, profiles.count);
	free(profiles.list);
	free(profiles.ids);
	return made;
}

/* ---- replies */

static void answer(struct request *request, bool (*write)(FILE *out, const struct request *request))
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	bool made = out && write(out, request);

	if (out && fclose(out) == 0 && made) {
		reply_bytes(&request->reply, 200, REPLY_JSON, blob_new(text, length));
		request_finish(request);
		return;
	}
	free(text);
	request_refuse(request, 500, "out of memory");
}

void answer_processes(struct request *request)
{
	answer(request, write_processes);
}

void answer_profiles(struct request *request)
{
	answer(request, write_profiles);
}
