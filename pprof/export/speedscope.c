/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own file format (https://www.speedscope.app/file-format-schema.json): a table of frames and
 * one "sampled" profile per sample type. Unlike its import of pprof files this shows every type, and inlined
 * functions.
 */
#include <string.h>

#include "pprof/export/request.h"
#include "pprof/text/json.h"

static void write_frames(struct json *json, const struct traces *t)
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

static int64_t cell(const struct traces *t, size_t row, size_t column, size_t type)
{
	int64_t value = t->values[(row * t->column_count + column) * t->slot_count + type];

	return value > 0 ? value : 0;
}

static void write_samples(struct json *json, const struct traces *t, size_t column, size_t type)
{
	json_array(json, "samples");
	for (size_t row = 0; row < t->row_count; row++) {
		const uint32_t *stack = traces_stack(t, row);

		if (!cell(t, row, column, type))
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
		if (cell(t, row, column, type))
			json_integer(json, NULL, cell(t, row, column, type));
	json_end(json);
}

static void write_profile(struct json *json, const struct traces *t, size_t column, size_t type)
{
	int64_t total = 0;

	for (size_t row = 0; row < t->row_count; row++)
		traces_sum(&total, cell(t, row, column, type));
	json_object(json, NULL);
	json_text(json, "type", "sampled");
	json_text(json, "name", t->types[type]);
	json_text(json, "unit",
	    strcmp(t->units[type], "bytes") == 0             ? "bytes"
	        : strcmp(t->units[type], "nanoseconds") == 0 ? "nanoseconds"
	                                                     : "none");
	json_integer(json, "startValue", 0);
	json_integer(json, "endValue", total);
	write_samples(json, t, column, type);
	json_end(json);
}

int speedscope_write(FILE *out, const struct traces *t, const struct export_request *request)
{
	struct json json = {.out = out};

	json_object(&json, NULL);
	json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	write_frames(&json, t);
	json_text(&json, "name", request->title);
	json_integer(&json, "activeProfileIndex", t->kinds[request->kind] < 0 ? 0 : t->kinds[request->kind]);
	json_text(&json, "exporter", "heaptap");
	json_array(&json, "profiles");
	for (size_t type = 0; type < t->type_count; type++)
		write_profile(&json, t, request->column, type);
	json_end(&json);
	json_end(&json);
	return 0;
}
