/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/status/status.h"

#include "pprof/text/clock.h"
#include "pprof/text/json.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/status/status_table.h"
#include "sampler/core/control_client.h"
#include "sampler/linux/screen.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- JSON */

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

void status_write_json(
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

/* ---- the command */

/* Profiled processes come first, and those with most in use in front. The others are sorted by service. */
static int by_importance(const void *a, const void *b)
{
	const struct control_process *x = a, *y = b;
	double x_bytes = isfinite(x->inuse_bytes) ? x->inuse_bytes : -1;
	double y_bytes = isfinite(y->inuse_bytes) ? y->inuse_bytes : -1;
	int order;

	if (x->profiled != y->profiled)
		return x->profiled ? -1 : 1;
	if (x->profiled && x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	order = strcmp(x->service, y->service);
	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Is the process named by one of the words, by pid or service? */
static bool is_named(const struct control_process *process, char *const *words, bool *named)
{
	char pid[16];
	bool found = false;

	snprintf(pid, sizeof(pid), "%d", (int)process->pid);
	for (size_t i = 0; words[i]; i++) {
		if (strcmp(words[i], pid) == 0 || strcmp(words[i], process->service) == 0)
			found = named[i] = true;
	}
	return found;
}

/* Keeps only the processes that are named, and logs the names that the daemon does not know. False if it
 * knows none. */
static bool choose(struct control_list *list, const struct options *options)
{
	bool *named = calloc((size_t)options->operand_count + 1, sizeof(*named));
	size_t kept = 0;

	for (size_t i = 0; named && i < list->process_count; i++) {
		if (is_named(&list->processes[i], options->operands, named))
			list->processes[kept++] = list->processes[i];
	}
	for (int i = 0; named && i < options->operand_count; i++) {
		if (!named[i])
			log_line("the daemon knows no process or service %s", options->operands[i]);
	}
	free(named);
	list->process_count = kept;
	return kept > 0;
}

int status_run(struct options *options)
{
	const struct read_options *read = &options->read;
	struct spool_list spools;
	struct control_list list;
	struct screen screen;
	char reason[512];
	int status = 1;

	if (control_client_list(options->socket, &list, reason, sizeof(reason))) {
		log_line("%s", reason);
		return 1;
	}
	(void)spool_list_read(&spools); /* without memory there are none */
	if (options->operand_count && !choose(&list, options))
		goto out;
	if (list.process_count)
		qsort(list.processes, list.process_count, sizeof(*list.processes), by_importance);
	if (screen_open(&screen, options->output, !read->no_pager, read->memory_max_bytes) == 0) {
		if (read->json)
			status_write_json(screen.out, &list, &spools, clock_unix_ns());
		else
			status_table_print(&screen, &list, &spools, clock_unix_ns());
		status = screen_close(&screen, 0);
	}
out:
	spool_list_fini(&spools);
	control_list_fini(&list);
	return status;
}
