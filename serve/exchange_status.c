/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/exchange_status.h"

#include "sampler/linux/clock.h"
#include "serve/discovery.h"
#include "serve/exchange.h"
#include "serve/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int write_metrics(FILE *out, const struct exchange *exchange)
{
	const struct server *server = exchange->server;
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

static void write_targets(FILE *out, const struct exchange *exchange)
{
	size_t count;
	const struct catalog_process *processes = catalog_processes(exchange->server->catalog, &count);

	discovery_write(out, processes, count, exchange->address);
}

void exchange_status(struct exchange *exchange)
{
	bool metrics = exchange->route.kind == ROUTE_METRICS;
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int err = !out ? -ENOMEM : metrics ? write_metrics(out, exchange) : 0;

	if (out && !metrics)
		write_targets(out, exchange);
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
