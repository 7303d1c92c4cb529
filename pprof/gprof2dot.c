/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/gprof2dot.h"

#include <inttypes.h>

#include "pprof/json.h"

static void write_functions(FILE *out, const struct traces *t)
{
	fputs("\"functions\":[", out);
	for (uint32_t i = 0; i < t->frame_count; i++) {
		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", out);
		json_string(out, t->frames[i].name);
		fputs(",\"module\":", out);
		json_string(out, t->frames[i].module);
		putc('}', out);
	}
	putc(']', out);
}

/* An event needs a chain of at least one function. */
static void write_events(FILE *out, const struct traces *t, size_t column, enum measure_kind kind)
{
	const char *comma = "\n";

	fputs("\"events\":[", out);
	for (size_t row = 0; row < t->row_count; row++) {
		int64_t value = traces_value(t, row, column, kind);
		const uint32_t *stack = traces_stack(t, row);

		if (!value || !t->rows[row].depth)
			continue;
		fprintf(out, "%s{\"callchain\":[", comma);
		for (uint32_t i = 0; i < t->rows[row].depth; i++)
			fprintf(out, i ? ",%" PRIu32 : "%" PRIu32, stack[i]);
		fprintf(out, "],\"cost\":[%" PRId64 "]}", value);
		comma = ",\n";
	}
	putc(']', out);
}

void gprof2dot_write(FILE *out, const struct traces *t, size_t column, enum measure_kind kind)
{
	fputs("{\"version\":0,\n\"costs\":[{\"description\":", out);
	json_string(out, kind == MEASURE_OTHER ? t->types[t->default_type] : measure_word(kind));
	fputs(",\"unit\":", out);
	json_string(out, measure_unit(t, kind));
	fputs("}],\n", out);
	write_functions(out, t);
	fputs(",\n", out);
	write_events(out, t, column, kind);
	fputs("}\n", out);
}
