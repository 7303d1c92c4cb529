/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_status.h"

#include "pprof/text/json.h"
#include "sampler/linux/clock.h"
#include "serve/exchange.h"
#include "serve/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int write_metrics(FILE *out, const struct exchange *exchange)
{
	const struct server *server = exchange->server;
	const struct control_list *const *lists;
	size_t count, listed = 0, list_count = catalog_lists(server->catalog, &lists);
	const struct catalog_process *processes = catalog_processes(server->catalog, &count);
	struct metrics_process *rows = calloc(count + 1, sizeof(*rows));
	struct metrics metrics = {.processes = rows,
	    .lists = lists,
	    .list_count = list_count,
	    .spools = catalog_spools(server->catalog),
	    .now_ns = clock_unix_ns(),
	    .server = {.requests = server->requests,
	        .refused = server->refused,
	        .snapshot_ns = snapshots_last_ns(server->snapshots),
	        .waits = server->waits}};
	int err;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (processes[i].listed)
			rows[listed++] = (struct metrics_process){processes[i].service, processes[i].listed};
	metrics.process_count = listed;
	err = metrics_write(out, &metrics);
	free(rows);
	return err;
}

static void write_label(struct json *json, const struct control_label *label)
{
	for (const char *at = label->key; *at; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_';

		if (!letter && (at == label->key || *at < '0' || *at > '9'))
			return; /* no name of a label to Prometheus */
	}
	if (*label->key)
		json_text(json, label->key, label->value);
}

/* http_sd of Prometheus and Alloy: each process is a target at our own address, below its path. */
static int write_targets(FILE *out, const struct exchange *exchange)
{
	size_t count;
	const struct catalog_process *processes = catalog_processes(exchange->server->catalog, &count);
	struct json json = {.out = out};
	char text[32];

	json_array(&json, NULL);
	for (size_t i = 0; i < count; i++) {
		if (!processes[i].listed)
			continue;
		json_object(&json, NULL);
		json_array(&json, "targets");
		json_text(&json, NULL, exchange->address);
		json_end(&json);
		json_object(&json, "labels");
		json_text(&json, "service_name", processes[i].service);
		snprintf(text, sizeof(text), "%d", (int)processes[i].key.pid);
		json_text(&json, "pid", text);
		snprintf(text, sizeof(text), "/pid/%d", (int)processes[i].key.pid);
		json_text(&json, "__profile_path_prefix__", text);
		for (size_t l = 0; l < processes[i].listed->label_count; l++)
			write_label(&json, &processes[i].listed->labels[l]);
		json_end(&json);
		json_end(&json);
	}
	json_end(&json);
	return 0;
}

void exchange_status(struct exchange *exchange)
{
	bool metrics = exchange->route.kind == ROUTE_METRICS;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int err = !out ? -ENOMEM : metrics ? write_metrics(out, exchange) : write_targets(out, exchange);

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	if (!err) {
		reply_bytes(
		    &exchange->reply, 200, metrics ? METRICS_TYPE : REPLY_JSON, blob_new(text, length));
	} else {
		free(text);
		reply_text(&exchange->reply, 500, REPLY_TEXT, "out of memory\n");
	}
	exchange_finish(exchange);
}
