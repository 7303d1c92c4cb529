/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as one HTML page that needs nothing else: no network, no library. It is the page of `heaptap
 * serve` (pprof/page/) with one profile in it: flame graph, callers and callees of a function, table, call
 * tree, stacks. The state of the view is in the address (#...), so that a view can be shared.
 */
#include "pprof/export/graph.h"
#include "pprof/export/request.h"
#include "pprof/page/page.h"
#include "pprof/text/json.h"

struct writing {
	const struct traces *traces;
	const struct graph_choice *graph;
	const struct answer *answer;
};

static int write_data(FILE *out, void *context)
{
	const struct writing *writing = context;
	struct json json = {.out = out};
	int err;

	json_object(&json, NULL);
	err = graph_write(&json, writing->traces, writing->graph);
	if (!err && writing->answer)
		answer_json(&json, writing->answer);
	json_end(&json);
	return err;
}

int flamegraph_write(FILE *out, const struct traces *t, const struct export_request *request)
{
	const struct graph_choice graph = {
	    .title = request->title,
	    .origin = t->options.anonymize ? NULL : request->origin,
	    .samples = request->samples,
	    .ended = request->ended,
	    .column = request->column,
	    .base = GRAPH_NO_COLUMN,
	    .peak = request->has_peak ? request->peak : GRAPH_NO_COLUMN,
	    .peak_is_snapshot = request->peak_is_snapshot,
	    .kind = request->kind,
	};
	struct writing writing = {t, &graph, request->answer};

	return page_write(out, request->title, write_data, &writing);
}
