/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/status/status_json.h"

#include "pprof/text/json.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { TIME_BYTES = 32 };

static void write_time(struct json *json, const char *key, int64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	char text[TIME_BYTES];
	struct tm tm;

	if (unix_ns <= 0 || !gmtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		json_number(json, key, NAN, 0);
	else
		json_text(json, key, text);
}

static void write_growth(struct json *json, const struct control_growth *growth)
{
	json_text(json, "growth", growth->kind);
	json_number(json, "growth_bytes", growth->bytes, 0);
	json_number(json, "growth_bytes_error", growth->bytes_error, 0);
	write_time(json, "growth_since", growth->since_unix_ns);
	write_time(json, "growth_until", growth->until_unix_ns);
	json_boolean(json, "growth_significant", strcmp(growth->kind, "grows") == 0);
	json_number(json, "growth_bytes_per_hour", growth->bytes_per_hour, 0);
	json_number(json, "growth_bytes_per_hour_error", growth->bytes_per_hour_error, 0);
}

static void write_process(struct json *json, const struct control_process *process)
{
	json_object(json, NULL);
	json_integer(json, "pid", process->pid);
	json_text(json, "service", process->service);
	json_text(json, "exe", process->exe);
	json_text(json, "comm", process->comm);
	json_text(json, "name", *process->name ? process->name : process->comm);
	json_text(json, "container_id", process->container_id);
	write_time(json, "since", process->since_unix_ns);
	json_boolean(json, "profiled", process->profiled);
	json_text(json, "reason", process->reason);
	json_number(json, "inuse_bytes", process->inuse_bytes, 0);
	json_number(json, "inuse_bytes_error", process->inuse_bytes_error, 0);
	json_number(json, "inuse_objects", process->inuse_objects, 0);
	json_integer(json, "rss_bytes", (int64_t)process->rss_bytes);
	write_growth(json, &process->growth);
	json_integer(json, "samples", (int64_t)process->samples);
	json_object(json, "lost");
	for (size_t i = 0; i < process->loss_count; i++)
		json_integer(json, process->losses[i].cause, (int64_t)process->losses[i].count);
	json_end(json);
	json_text(json, "backend", process->backend);
	json_object(json, "labels");
	for (size_t i = 0; i < process->label_count; i++)
		json_text(json, process->labels[i].key, process->labels[i].value);
	json_end(json);
	json_end(json);
}

static void write_spool(struct json *json, const struct spool_list_row *row, int64_t now_unix_ns)
{
	const struct spool_counters *counters = &row->counters;

	json_object(json, NULL);
	json_text(json, "name", row->target);
	json_integer(json, "sent", (int64_t)counters->sent);
	json_integer(json, "retried", (int64_t)counters->retried);
	json_integer(json, "rejected", (int64_t)counters->rejected);
	json_integer(json, "dropped", (int64_t)counters->dropped);
	json_integer(json, "given_up", (int64_t)counters->given_up);
	json_integer(json, "passed_over", (int64_t)counters->passed_over);
	json_integer(json, "resent", (int64_t)counters->resent);
	json_integer(json, "denied", (int64_t)counters->denied);
	json_integer(json, "spool_profiles", (int64_t)row->count);
	json_integer(json, "spool_bytes", (int64_t)row->bytes);
	json_number(json, "oldest_seconds", row->oldest_ns ? spool_list_age(row, now_unix_ns) : NAN, 0);
	json_end(json);
}

void status_json_write(
    FILE *out, const struct control_list *list, const struct spool_list *spools, int64_t now_unix_ns)
{
	struct json json = {.out = out};

	json_object(&json, NULL);
	json_object(&json, "daemon");
	json_integer(&json, "pid", list->daemon.pid);
	write_time(&json, "since", list->daemon.since_unix_ns);
	json_number(&json, "cpu_seconds", (double)list->daemon.cpu_ns / 1e9, 3);
	json_integer(&json, "rss_bytes", (int64_t)list->daemon.rss_bytes);
	json_integer(&json, "disk_bytes", (int64_t)list->daemon.disk_bytes);
	json_end(&json);
	json_array(&json, "processes");
	for (size_t i = 0; i < list->process_count; i++)
		write_process(&json, &list->processes[i]);
	json_end(&json);
	json_array(&json, "push");
	for (size_t i = 0; i < spools->count; i++)
		write_spool(&json, &spools->rows[i], now_unix_ns);
	json_end(&json);
	json_end(&json);
}
