/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_list.h"

#include <math.h>
#include <string.h>

enum { SPARK_POINTS = 64 };

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

/* At most so many, evenly, the last among them. */
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

void api_processes_write(
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

void api_profiles_write(FILE *out, const struct api_profile *profiles, size_t count)
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

void api_timeline_write(FILE *out, const struct api_process *process, const struct api_query *query)
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
