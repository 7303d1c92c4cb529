/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the export formats, and the writers that take less than a page. */
#include "pprof/export/format.h"

#include <inttypes.h>
#include <string.h>

#include "pprof/export/graph.h"
#include "pprof/page/page.h"
#include "pprof/text/json.h"
#include "pprof/text/utf8.h"

/*
 * ---- Folded stacks, the input of flamegraph.pl, inferno and others: one line per stack, frames from the
 * outermost separated by ';', a space, a whole number.
 */

/* The format uses ';' and line ends as separators. */
static void folded_name(FILE *out, const char *name)
{
	while (*name && !ferror(out)) {
		if (*name == ';') {
			putc(':', out);
			name++;
		} else {
			name = utf8_put(out, name, ' ');
		}
	}
}

static int folded_write(FILE *out, const struct traces *t, const struct export_request *request)
{
	const size_t column = request->column;
	const enum measure_kind kind = request->kind;

	for (size_t row = 0; row < t->row_count; row++) {
		int64_t value = traces_value(t, row, column, kind);
		const uint32_t *stack = traces_stack(t, row);

		if (value <= 0)
			continue;
		if (!t->rows[row].depth)
			fputs("[no stack]", out);
		for (uint32_t i = t->rows[row].depth; i-- > 0;) {
			folded_name(out, t->frames.rows[stack[i]].name);
			if (t->options.lines && t->frames.rows[stack[i]].line > 0)
				fprintf(out, ":%" PRId64, t->frames.rows[stack[i]].line);
			if (i)
				putc(';', out);
		}
		fprintf(out, " %" PRId64 "\n", value);
	}
	return 0;
}

/*
 * ---- A profile as one HTML page that needs nothing else: no network, no library. It is the page of `heaptap
 * serve` (pprof/page/) with one profile in it: flame graph, callers and callees of a function, table, call
 * tree, stacks. The state of the view is in the address (#...), so that a view can be shared.
 */

struct page_data {
	const struct traces *traces;
	const struct graph_choice *graph;
	const struct answer *answer;
};

static int write_page_data(FILE *out, void *context)
{
	const struct page_data *page = context;
	struct json json = {.out = out};
	int err;

	json_object(&json, NULL);
	err = graph_write(&json, page->traces, page->graph);
	if (!err && page->answer)
		answer_json(&json, page->answer);
	json_end(&json);
	return err;
}

static int flamegraph_write(FILE *out, const struct traces *t, const struct export_request *request)
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
	struct page_data page = {t, &graph, request->answer};

	return page_write(out, request->title, write_page_data, &page);
}

/*
 * ---- gprof2dot's JSON (its schema.json, version 0): functions, and events that are a call chain from the
 * leaf outwards with its cost. `gprof2dot -f json FILE | dot -Tsvg` draws it.
 */

static void gprof2dot_functions(struct json *json, const struct traces *t)
{
	json_array(json, "functions");
	for (uint32_t i = 0; i < t->frames.count; i++) {
		json_object(json, NULL);
		json_text(json, "name", t->frames.rows[i].name);
		json_text(json, "module", t->frames.rows[i].module);
		json_end(json);
	}
	json_end(json);
}

/* An event needs a chain of at least one function. */
static void gprof2dot_events(struct json *json, const struct traces *t, size_t column, enum measure_kind kind)
{
	json_array(json, "events");
	for (size_t row = 0; row < t->row_count; row++) {
		int64_t value = traces_value(t, row, column, kind);
		const uint32_t *stack = traces_stack(t, row);

		if (!value || !t->rows[row].depth)
			continue;
		json_object(json, NULL);
		json_array(json, "callchain");
		for (uint32_t i = 0; i < t->rows[row].depth; i++)
			json_integer(json, NULL, stack[i]);
		json_end(json);
		json_array(json, "cost");
		json_integer(json, NULL, value);
		json_end(json);
		json_end(json);
	}
	json_end(json);
}

static int gprof2dot_write(FILE *out, const struct traces *t, const struct export_request *request)
{
	const size_t column = request->column;
	const enum measure_kind kind = request->kind;
	struct json json = {.out = out};

	json_object(&json, NULL);
	json_integer(&json, "version", 0);
	json_array(&json, "costs");
	json_object(&json, NULL);
	json_text(
	    &json, "description", kind == MEASURE_OTHER ? t->types[t->default_type] : traces_kind_word(kind));
	json_text(&json, "unit", traces_unit(t, kind));
	json_end(&json);
	json_end(&json);
	gprof2dot_functions(&json, t);
	gprof2dot_events(&json, t, column, kind);
	json_end(&json);
	return 0;
}

/*
 * ---- speedscope's own file format (https://www.speedscope.app/file-format-schema.json): a table of frames
 * and one "sampled" profile per sample type. Unlike its import of pprof files this shows every type, and
 * inlined functions.
 */

static void speedscope_frames(struct json *json, const struct traces *t)
{
	json_object(json, "shared");
	json_array(json, "frames");
	for (uint32_t i = 0; i < t->frames.count; i++) {
		const struct frames_row *frame = &t->frames.rows[i];

		json_object(json, NULL);
		json_text(json, "name", frame->name);
		if (*frame->file)
			json_text(json, "file", frame->file);
		if (frame->line > 0)
			json_integer(json, "line", frame->line);
		json_end(json);
	}
	/* Stands for a stack without frames, which speedscope would not count as a sample. */
	json_object(json, NULL);
	json_text(json, "name", "[no stack]");
	json_end(json);
	json_end(json);
	json_end(json);
}

static int64_t speedscope_value(const struct traces *t, size_t row, size_t column, size_t type)
{
	int64_t value = t->values[(row * t->column_count + column) * t->slot_count + type];

	return value > 0 ? value : 0;
}

static void speedscope_samples(struct json *json, const struct traces *t, size_t column, size_t type)
{
	json_array(json, "samples");
	for (size_t row = 0; row < t->row_count; row++) {
		const uint32_t *stack = traces_stack(t, row);

		if (!speedscope_value(t, row, column, type))
			continue;
		json_array(json, NULL);
		for (uint32_t i = t->rows[row].depth; i-- > 0;)
			json_integer(json, NULL, stack[i]);
		if (!t->rows[row].depth)
			json_integer(json, NULL, t->frames.count);
		json_end(json);
	}
	json_end(json);
	json_array(json, "weights");
	for (size_t row = 0; row < t->row_count; row++)
		if (speedscope_value(t, row, column, type))
			json_integer(json, NULL, speedscope_value(t, row, column, type));
	json_end(json);
}

static void speedscope_profile(struct json *json, const struct traces *t, size_t column, size_t type)
{
	int64_t total = 0;

	for (size_t row = 0; row < t->row_count; row++)
		traces_sum(&total, speedscope_value(t, row, column, type));
	json_object(json, NULL);
	json_text(json, "type", "sampled");
	json_text(json, "name", t->types[type]);
	json_text(json, "unit",
	    strcmp(t->units[type], "bytes") == 0             ? "bytes"
	        : strcmp(t->units[type], "nanoseconds") == 0 ? "nanoseconds"
	                                                     : "none");
	json_integer(json, "startValue", 0);
	json_integer(json, "endValue", total);
	speedscope_samples(json, t, column, type);
	json_end(json);
}

static int speedscope_write(FILE *out, const struct traces *t, const struct export_request *request)
{
	struct json json = {.out = out};

	json_object(&json, NULL);
	json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	speedscope_frames(&json, t);
	json_text(&json, "name", request->title);
	json_integer(&json, "activeProfileIndex", t->kinds[request->kind] < 0 ? 0 : t->kinds[request->kind]);
	json_text(&json, "exporter", "heaptap");
	json_array(&json, "profiles");
	for (size_t type = 0; type < t->type_count; type++)
		speedscope_profile(&json, t, request->column, type);
	json_end(&json);
	json_end(&json);
	return 0;
}

/* ---- the table */

/* clang-format off */
/* name, function, what it needs */
#define FORMATS(X) \
	X(folded, folded_write, 0) \
	X(flamegraph, flamegraph_write, EXPORT_LABELS | EXPORT_SPLIT | EXPORT_ANSWER | EXPORT_FILE) \
	X(speedscope, speedscope_write, EXPORT_FILE) \
	X(json, gprof2dot_write, 0) \
	X(csv, csv_write, 0) \
	X(massif, massif_write, EXPORT_BYTES_ONLY) \
	X(heaptrack, heaptrack_write, EXPORT_HEAP_ONLY | EXPORT_FILE)

/* clang-format on */
#define FORMAT_ROW(name, write, needs)  {#name, write, needs},
#define FORMAT_NAME(name, write, needs) #name,

const struct export_format export_formats[] = {FORMATS(FORMAT_ROW)};
const char *const export_format_names[] = {FORMATS(FORMAT_NAME) NULL};
