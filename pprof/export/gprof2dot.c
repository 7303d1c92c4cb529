/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gprof2dot's JSON (its schema.json, version 0): functions, and events that are a call chain from the leaf
 * outwards with its cost. `gprof2dot -f json FILE | dot -Tsvg` draws it.
 */
#include "pprof/export/request.h"
#include "pprof/text/json.h"

static void write_functions(struct json *json, const struct traces *t)
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
static void write_events(struct json *json, const struct traces *t, size_t column, enum measure_kind kind)
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

int gprof2dot_write(FILE *out, const struct traces *t, const struct export_request *request)
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
	write_functions(&json, t);
	write_events(&json, t, column, kind);
	json_end(&json);
	return 0;
}
