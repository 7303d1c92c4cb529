/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/metrics.h"

#include "pprof/text/clock.h"
#include "pprof/text/json.h"
#include "pprof/text/utf8.h"
#include "serve/endpoint_list.h"
#include "serve/request.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct service {
	const char *name;
	double inuse_bytes, variance;
	double growth_bytes_per_s, growth_variance;
	uint64_t rss_bytes, targets;
	bool inuse_known, growth_known;
	const struct counters_sum *counted; /* NULL: nothing was counted */
};

struct sums {
	struct service *services;
	size_t count;
};

/* Writes the value of a label, escaped as the format wants it. */
static void write_label(FILE *out, const char *value)
{
	while (*value) {
		if (*value == '\n') {
			fputs("\\n", out);
			value++;
			continue;
		}
		if (*value == '"' || *value == '\\')
			putc('\\', out);
		value = utf8_put(out, value, '?');
	}
}

/* ---- sums */

static void add_process(
    struct sums *sums, const struct metrics_process *process, const struct counters *counters)
{
	const struct control_process *listed = process->listed;
	size_t at = 0;

	while (at < sums->count && strcmp(sums->services[at].name, process->service) != 0)
		at++;
	if (at == sums->count)
		sums->services[sums->count++] = (struct service){
		    .name = process->service, .counted = counters_of(counters, process->service)};
	struct service *service = &sums->services[at];
	service->targets++;
	service->rss_bytes += listed->rss_bytes;
	if (isfinite(listed->inuse_bytes)) {
		service->inuse_bytes += listed->inuse_bytes;
		service->inuse_known = true;
	}
	if (isfinite(listed->inuse_bytes_error))
		service->variance += listed->inuse_bytes_error * listed->inuse_bytes_error;
	service->growth_known = service->growth_known || listed->growth.kind[0];
	if (isfinite(listed->growth.bytes_per_hour))
		service->growth_bytes_per_s += listed->growth.bytes_per_hour / 3600;
	if (isfinite(listed->growth.bytes_per_hour_error))
		service->growth_variance += pow(listed->growth.bytes_per_hour_error / 3600, 2);
}

/* ---- text */

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP heaptap_%s %s\n# TYPE heaptap_%s %s\n", name, help, name, type);
}

static void row(FILE *out, const char *name, const char *service, double value)
{
	fprintf(out, "heaptap_%s{service_name=\"", name);
	write_label(out, service);
	fprintf(out, "\"} %.17g\n", value);
}

static void write_services(FILE *out, const struct sums *sums)
{
	const struct service *s = sums->services, *end = s + sums->count;

	head(out, "inuse_bytes", "gauge", "Heap in use, estimated.");
	for (const struct service *at = s; at < end; at++)
		if (at->inuse_known)
			row(out, "inuse_bytes", at->name, at->inuse_bytes);
	head(out, "inuse_bytes_stderr", "gauge", "Standard error of heaptap_inuse_bytes.");
	for (const struct service *at = s; at < end; at++)
		if (at->inuse_known)
			row(out, "inuse_bytes_stderr", at->name, sqrt(at->variance));
	head(out, "growth_bytes_per_second", "gauge",
	    "How fast heap in use grows in processes where it grows by more than chance; 0: in none.");
	for (const struct service *at = s; at < end; at++)
		if (at->growth_known)
			row(out, "growth_bytes_per_second", at->name, at->growth_bytes_per_s);
	head(out, "growth_bytes_per_second_stderr", "gauge",
	    "Standard error of heaptap_growth_bytes_per_second.");
	for (const struct service *at = s; at < end; at++)
		if (at->growth_known)
			row(out, "growth_bytes_per_second_stderr", at->name, sqrt(at->growth_variance));
	head(out, "alloc_bytes_total", "counter",
	    "Bytes ever allocated, estimated. Ended processes count as far as they were seen.");
	for (const struct service *at = s; at < end; at++)
		if (at->counted && at->counted->alloc_known)
			row(out, "alloc_bytes_total", at->name, at->counted->alloc_bytes);
	head(out, "samples_total", "counter", "Samples taken.");
	for (const struct service *at = s; at < end; at++)
		if (at->counted)
			row(out, "samples_total", at->name, (double)at->counted->samples);
	head(out, "process_resident_bytes", "gauge", "Resident memory of the processes.");
	for (const struct service *at = s; at < end; at++)
		row(out, "process_resident_bytes", at->name, (double)at->rss_bytes);
	head(out, "targets", "gauge", "Processes that are profiled.");
	for (const struct service *at = s; at < end; at++)
		row(out, "targets", at->name, (double)at->targets);
}

static void write_losses(FILE *out, const struct sums *sums)
{
	const struct service *s = sums->services, *end = s + sums->count;

	head(out, "lost_samples_total", "counter", "Samples that were lost, by cause.");
	for (const struct service *at = s; at < end; at++) {
		for (size_t i = 0; at->counted && i < at->counted->loss_count; i++) {
			fputs("heaptap_lost_samples_total{service_name=\"", out);
			write_label(out, at->name);
			fputs("\",cause=\"", out);
			write_label(out, at->counted->losses[i].cause);
			fprintf(out, "\"} %" PRIu64 "\n", at->counted->losses[i].count);
		}
	}
}

static void write_samplers(FILE *out, const struct metrics *metrics)
{
	uint64_t disk_bytes = 0, samplers = 0, rss_bytes = 0;

	for (size_t i = 0; i < metrics->list_count; i++) {
		const struct control_daemon *daemon = &metrics->lists[i]->daemon;

		samplers += daemon->pid != 0;
		rss_bytes += daemon->rss_bytes;
		disk_bytes += daemon->disk_bytes;
	}
	head(out, "samplers", "gauge", "Samplers that answer: sessions of heaptap record, and the daemon.");
	fprintf(out, "heaptap_samplers %" PRIu64 "\n", samplers);
	head(out, "cpu_seconds_total", "counter",
	    "CPU time of samplers. Ended samplers count as far as they were seen.");
	fprintf(out, "heaptap_cpu_seconds_total %.6f\n", (double)counters_cpu_ns(metrics->counters) / 1e9);
	head(out, "sampler_resident_bytes", "gauge", "Resident memory of the samplers.");
	fprintf(out, "heaptap_sampler_resident_bytes %" PRIu64 "\n", rss_bytes);
	head(out, "disk_bytes", "gauge", "What stores take on disk.");
	fprintf(out, "heaptap_disk_bytes %" PRIu64 "\n", disk_bytes);
}

static void write_server(FILE *out, const struct metrics_server *server)
{
	if (server->snapshot_ns) {
		head(out, "snapshot_seconds", "gauge", "How long the last snapshot for a client took.");
		fprintf(out, "heaptap_snapshot_seconds %.6f\n", (double)server->snapshot_ns / 1e9);
	}
	head(out, "serve_requests_total", "counter", "Requests to this server.");
	fprintf(out, "heaptap_serve_requests_total %" PRIu64 "\n", server->requests);
	head(out, "serve_refused_total", "counter",
	    "Requests refused: without the token, for a foreign host, beyond a limit.");
	fprintf(out, "heaptap_serve_refused_total %" PRIu64 "\n", server->refused);
	head(out, "serve_cut_off_total", "counter", "Connections that were closed to make room for others.");
	fprintf(out, "heaptap_serve_cut_off_total %" PRIu64 "\n", server->cut_off);
	head(out, "serve_rows_left_out", "gauge",
	    "Rows left out of lists of other users' samplers: not their process, or ended, or too many.");
	fprintf(out, "heaptap_serve_rows_left_out %" PRIu64 "\n", server->left_out);
	head(out, "serve_waits", "gauge", "Requests that wait for their seconds.");
	fprintf(out, "heaptap_serve_waits %u\n", server->waits);
}

/* ---- targets of heaptap push */

static void target_row(FILE *out, const char *name, const struct spool_list_row *row, double value)
{
	/* No character of a target's name has to be escaped. */
	fprintf(out, "heaptap_%s{target=\"%s\"} %.17g\n", name, row->target, value);
}

static void write_spools(FILE *out, const struct spool_list *spools, int64_t now_ns)
{
	static const struct {
		const char *name, *help;
		size_t at;
	} counters[] = {
	    {"push_sent_total", "Profiles that the target has acknowledged.",
	        offsetof(struct spool_counters, sent)},
	    {"push_retried_total", "Attempts after which the same profile was to be sent again.",
	        offsetof(struct spool_counters, retried)},
	    {"push_rejected_total", "Profiles that the target refused for good.",
	        offsetof(struct spool_counters, rejected)},
	    {"push_dropped_total", "Profiles never delivered: too old for the target, or no room.",
	        offsetof(struct spool_counters, dropped)},
	    {"push_given_up_total",
	        "Profiles that the target could not take for long, while it took another one.",
	        offsetof(struct spool_counters, given_up)},
	    {"push_passed_over_total",
	        "Profiles with a time before one taken of their process: the clock was set back.",
	        offsetof(struct spool_counters, passed_over)},
	    {"push_resent_total",
	        "Attempts repeated although the target may have the profile: its answer was never read.",
	        offsetof(struct spool_counters, resent)},
	};
	const struct spool_list_row *end = spools->rows + spools->count;

	if (!spools->count)
		return;
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		head(out, counters[i].name, "counter", counters[i].help);
		for (const struct spool_list_row *row = spools->rows; row < end; row++)
			target_row(out, counters[i].name, row,
			    (double)*(const uint64_t *)((const char *)&row->counters + counters[i].at));
	}
	head(out, "push_denied", "gauge",
	    "Attempts refused for the token since the target last took or judged a profile.");
	for (const struct spool_list_row *row = spools->rows; row < end; row++)
		target_row(out, "push_denied", row, (double)row->counters.denied);
	head(out, "spool_bytes", "gauge", "Profiles that wait for the target.");
	for (const struct spool_list_row *row = spools->rows; row < end; row++)
		target_row(out, "spool_bytes", row, (double)row->bytes);
	head(out, "spool_profiles", "gauge", "How many profiles wait for the target.");
	for (const struct spool_list_row *row = spools->rows; row < end; row++)
		target_row(out, "spool_profiles", row, (double)row->count);
	head(out, "spool_oldest_seconds", "gauge", "Age of the oldest profile that waits; 0: none does.");
	for (const struct spool_list_row *row = spools->rows; row < end; row++)
		target_row(out, "spool_oldest_seconds", row, spool_list_age(row, now_ns));
}

int metrics_write(FILE *out, const struct metrics *metrics)
{
	struct sums sums = {0};

	sums.services = calloc(metrics->process_count + 1, sizeof(*sums.services));
	if (!sums.services)
		return -ENOMEM;
	for (size_t i = 0; i < metrics->process_count; i++)
		add_process(&sums, &metrics->processes[i], metrics->counters);
	write_services(out, &sums);
	write_losses(out, &sums);
	write_samplers(out, metrics);
	write_spools(out, metrics->spools, metrics->now_ns);
	write_server(out, &metrics->server);
	free(sums.services);
	return 0;
}

/* ---- the endpoint */

/* From the catalog to the plain structs. */
static int write_all(FILE *out, const struct request *request)
{
	const struct server *server = request->server;
	const struct catalog_lists *said = catalog_lists(server->catalog);
	const struct control_list *lists[CATALOG_LISTS_MAX];
	size_t count, listed = 0;
	const struct catalog_process *processes = catalog_processes(server->catalog, &count);
	struct metrics_process *rows = calloc(count + 1, sizeof(*rows));
	struct metrics metrics = {.processes = rows,
	    .lists = lists,
	    .list_count = said->count,
	    .counters = server->counters,
	    .spools = catalog_spools(server->catalog),
	    .now_ns = clock_unix_ns(),
	    .server = {.requests = server->requests,
	        .refused = server->refused,
	        .cut_off = server->cut_off,
	        .snapshot_ns = snapshots_last_ns(server->snapshots),
	        .waits = server->waits}};
	int err;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < said->count; i++) {
		lists[i] = said->items[i].list;
		metrics.server.left_out += said->items[i].left_out;
	}
	for (size_t i = 0; i < count; i++)
		if (processes[i].listed)
			rows[listed++] = (struct metrics_process){processes[i].service, processes[i].listed};
	metrics.process_count = listed;
	err = metrics_write(out, &metrics);
	free(rows);
	return err;
}

void answer_metrics(struct request *request)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int err = out ? write_all(out, request) : -ENOMEM;

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	if (!err) {
		reply_bytes(&request->reply, 200, METRICS_TYPE, blob_new(text, length));
	} else {
		free(text);
		reply_text(&request->reply, 500, REPLY_TEXT, "out of memory\n");
	}
	request_finish(request);
}

/* ---- /sd */

/* Is that the name of a label to Prometheus, and free? Names that begin with "__" are instructions to
 * Prometheus, and the others are ours. */
static bool is_name(const char *name)
{
	if (!*name || strncmp(name, "__", 2) == 0 || strcmp(name, "service_name") == 0 ||
	    strcmp(name, "pid") == 0)
		return false;
	for (const char *at = name; *at; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_';

		if (!letter && (at == name || *at < '0' || *at > '9'))
			return false;
	}
	return true;
}

/* If several labels have one name, the first counts. */
static bool is_given_before(const struct control_process *process, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (strcmp(process->labels[i].key, process->labels[number].key) == 0)
			return true;
	return false;
}

static void write_labels(struct json *json, const struct catalog_process *process)
{
	const struct control_process *listed = process->listed;
	char text[32];

	json_text(json, "service_name", process->service);
	snprintf(text, sizeof(text), "%d", (int)process->key.pid);
	json_text(json, "pid", text);
	snprintf(text, sizeof(text), "/pid/%d", (int)process->key.pid);
	json_text(json, "__profile_path_prefix__", text);
	for (size_t i = 0; i < listed->label_count; i++)
		if (is_name(listed->labels[i].key) && !is_given_before(listed, i))
			json_text(json, listed->labels[i].key, listed->labels[i].value);
}

void metrics_write_targets(
    FILE *out, const struct catalog_process *processes, size_t count, const char *address)
{
	struct json json = {.out = out};

	json_array(&json, NULL);
	for (size_t i = 0; i < count; i++) {
		if (!processes[i].listed)
			continue;
		json_object(&json, NULL);
		json_array(&json, "targets");
		json_text(&json, NULL, address);
		json_end(&json);
		json_object(&json, "labels");
		write_labels(&json, &processes[i]);
		json_end(&json);
		json_end(&json);
	}
	json_end(&json);
}

void answer_discovery(struct request *request)
{
	size_t count, length = 0;
	const struct catalog_process *processes = catalog_processes(request->server->catalog, &count);
	char *text = NULL, address[CLIENT_ADDRESS_BYTES];
	FILE *out = open_memstream(&text, &length);

	client_server_address(&request->client, address);
	if (out)
		metrics_write_targets(out, processes, count, address);
	if (out && fclose(out) == 0) {
		reply_bytes(&request->reply, 200, REPLY_JSON, blob_new(text, length));
	} else {
		free(text);
		reply_text(&request->reply, 500, REPLY_TEXT, "out of memory\n");
	}
	request_finish(request);
}
