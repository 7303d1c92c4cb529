/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/export/traces_json.h"

#include <math.h>

void traces_json_frame(struct json *json, const struct traces *t, uint32_t number)
{
	const struct frames_row *frame = &t->frames.rows[number];

	json_object(json, NULL);
	json_text(json, "name", frame->name);
	if (frame->label != frame->name)
		json_text(json, "label", frame->label);
	json_text(json, "file", frame->file);
	if (frame->line > 0)
		json_integer(json, "line", frame->line);
	json_text(json, "module", frame->module);
}

void traces_json_stack(struct json *json, const struct traces *t, size_t row)
{
	const uint32_t *stack = traces_stack(t, row);

	json_array(json, "stack");
	for (uint32_t i = 0; i < t->rows[row].depth; i++) {
		traces_json_frame(json, t, stack[i]);
		json_end(json);
	}
	json_end(json);
}

/* ---- growth */

void traces_json_trend(struct json *json, const struct growth_row *row)
{
	const struct trend *trend = &row->trend;

	json_text(json, "kind", trend_kind_name(trend->kind));
	json_number(json, "change", trend->bytes, 0);
	json_number(json, "change_error", sqrt(fmax(trend->variance, 0)), 1);
	json_integer(json, "since_ns", row->since_ns);
	json_integer(json, "until_ns", row->until_ns);
	json_number(json, "per_hour", trend->bytes_per_s * 3600, 0);
	json_number(json, "per_hour_error", sqrt(fmax(trend->bytes_per_s_variance, 0)) * 3600, 0);
	json_number(json, "last", row->inuse_bytes, 0);
	json_number(json, "samples", row->samples, 1);
}

static bool is_of(const struct traces *t, uint32_t row, const struct growth_row *growth)
{
	const uint32_t head = t->rows[row].head, *stack = traces_stack(t, row);

	for (uint32_t i = head; i < t->rows[row].depth; i++)
		if (stack[i] == growth->frame && (i > head) == growth->is_caller)
			return true;
	return false;
}

static void write_stack(struct json *json, const struct traces *t, const struct growth_row *growth)
{
	double most = -INFINITY;
	uint32_t found = 0;

	for (uint32_t row = 0; row < t->row_count; row++) {
		const double rise = (double)traces_value(t, row, growth->until_column, MEASURE_INUSE) -
		    (double)traces_value(t, row, growth->since_column, MEASURE_INUSE);

		if (rise > most && is_of(t, row, growth)) {
			most = rise;
			found = row;
		}
	}
	if (most > -INFINITY)
		traces_json_stack(json, t, found);
}

void traces_json_growth(
    struct json *json, const char *name, const struct traces *t, const struct growth *growth, size_t most)
{
	json_array(json, name);
	for (size_t i = 0; i < growth->count && (!most || i < most); i++) {
		const struct growth_row *row = &growth->rows[i];

		json_object(json, NULL);
		json_text(json, "name", t->frames.rows[row->frame].name);
		json_boolean(json, "is_caller", row->is_caller);
		traces_json_trend(json, row);
		write_stack(json, t, row);
		json_end(json);
	}
	json_end(json);
}
