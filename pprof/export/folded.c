/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, the input of flamegraph.pl, inferno and others: one line per stack, frames from the
 * outermost separated by ';', a space, a whole number.
 */
#include <inttypes.h>

#include "pprof/export/request.h"
#include "pprof/text/utf8.h"

/* The format uses ';' and line ends as separators. */
static void write_name(FILE *out, const char *name)
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

int folded_write(FILE *out, const struct traces *t, const struct export_request *request)
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
			write_name(out, t->frames.rows[stack[i]].name);
			if (t->options.lines && t->frames.rows[stack[i]].line > 0)
				fprintf(out, ":%" PRId64, t->frames.rows[stack[i]].line);
			if (i)
				putc(';', out);
		}
		fprintf(out, " %" PRId64 "\n", value);
	}
	return 0;
}
