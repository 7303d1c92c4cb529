/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/speedscope.h"

#include <inttypes.h>
#include <string.h>

#include "pprof/json.h"

static void write_frames(FILE *out, const struct traces *t)
{
	fputs("\"shared\":{\"frames\":[", out);
	for (uint32_t i = 0; i < t->frame_count; i++) {
		const struct traces_frame *frame = &t->frames[i];

		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", out);
		json_string(out, frame->name);
		if (*frame->file) {
			fputs(",\"file\":", out);
			json_string(out, frame->file);
		}
		if (frame->line > 0)
			fprintf(out, ",\"line\":%" PRId64, frame->line);
		putc('}', out);
	}
	/* A stack without frames has a frame of its own, or it would be no sample. */
	fprintf(out, "%s\n{\"name\":\"[no stack]\"}]}", t->frame_count ? "," : "");
}

static int64_t cell(const struct traces *t, size_t row, size_t column, size_t type)
{
	int64_t value = t->values[(row * t->column_count + column) * t->type_count + type];

	return value > 0 ? value : 0;
}

static void write_samples(FILE *out, const struct traces *t, size_t column, size_t type)
{
	const char *comma = "";

	fputs("\"samples\":[", out);
	for (size_t row = 0; row < t->row_count; row++) {
		const uint32_t *stack = traces_stack(t, row);

		if (!cell(t, row, column, type))
			continue;
		fprintf(out, "%s[", comma);
		for (uint32_t i = t->rows[row].depth; i-- > 0;)
			fprintf(out, i ? "%" PRIu32 "," : "%" PRIu32, stack[i]);
		if (!t->rows[row].depth)
			fprintf(out, "%" PRIu32, t->frame_count);
		putc(']', out);
		comma = ",\n";
	}
	fputs("],\n\"weights\":[", out);
	comma = "";
	for (size_t row = 0; row < t->row_count; row++) {
		if (!cell(t, row, column, type))
			continue;
		fprintf(out, "%s%" PRId64, comma, cell(t, row, column, type));
		comma = ",";
	}
	putc(']', out);
}

static void write_profile(FILE *out, const struct traces *t, size_t column, size_t type)
{
	int64_t total = 0;

	for (size_t row = 0; row < t->row_count; row++)
		traces_sum(&total, cell(t, row, column, type));
	fputs("{\"type\":\"sampled\",\"name\":", out);
	json_string(out, t->types[type]);
	fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64 ",\n",
	    strcmp(t->units[type], "bytes") == 0             ? "bytes"
	        : strcmp(t->units[type], "nanoseconds") == 0 ? "nanoseconds"
	                                                     : "none",
	    total);
	write_samples(out, t, column, type);
	putc('}', out);
}

void speedscope_write(
    FILE *out, const struct traces *t, size_t column, enum measure_kind shown, const char *name)
{
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n", out);
	write_frames(out, t);
	fputs(",\n\"name\":", out);
	json_string(out, name);
	fprintf(out, ",\"activeProfileIndex\":%d,\"exporter\":\"heaptap\",\n\"profiles\":[\n",
	    t->kinds[shown] < 0 ? 0 : t->kinds[shown]);
	for (size_t type = 0; type < t->type_count; type++) {
		if (type)
			fputs(",\n", out);
		write_profile(out, t, column, type);
	}
	fputs("]}\n", out);
}
