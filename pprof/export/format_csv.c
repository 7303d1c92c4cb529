/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flat table as comma-separated values (RFC 4180, but with Unix line ends): a row per function, and for
 * each sample type its own value (flat) and the value with everything it called (cum); for the four sample
 * types of a heap also the standard error and the number of samples behind it. A cell is empty if its value
 * is unknown.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/totals.h"
#include "pprof/export/format.h"
#include "pprof/text/utf8.h"

/* Spreadsheets take a cell that begins with one of these signs for a formula, some also if the sign has its
 * full-width form. An apostrophe in front prevents that (OWASP, "CSV Injection"). */
static bool is_formula(const char *text)
{
	static const char *const signs[] = {"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (strncmp(text, signs[i], strlen(signs[i])) == 0)
			return true;
	return false;
}

static void write_text(FILE *out, const char *text)
{
	bool quoted = strpbrk(text, ",\"") != NULL;

	fputs(quoted ? "\"" : "", out);
	fputs(is_formula(text) ? "'" : "", out);
	while (*text && !ferror(out)) {
		if (*text == '"')
			putc('"', out);
		text = utf8_put(out, text, '?');
	}
	fputs(quoted ? "\"" : "", out);
}

static bool is_written(const struct traces *t, int kind)
{
	return traces_has(t, (enum measure_kind)kind) && kind != MEASURE_FREED;
}

static void write_head(FILE *out, const struct traces *t)
{
	fputs("function,file,line,module", out);
	for (int kind = 0; kind < MEASURE_COUNT; kind++) {
		if (!is_written(t, kind))
			continue;
		for (int cum = 0; cum < 2; cum++) {
			static const char *const suffixes[] = {"", "_error", "_samples"};

			for (size_t i = 0; i < 3; i++) {
				putc(',', out);
				write_text(out, t->types[t->kinds[kind]]);
				fprintf(out, "_%s%s", cum ? "cum" : "flat", suffixes[i]);
			}
		}
	}
	putc('\n', out);
}

static void write_sum(FILE *out, const struct traces *t, int kind, const struct totals_sum *sum)
{
	if (t->unsure || kind == MEASURE_OTHER)
		fprintf(out, ",%" PRId64 ",,", sum->value);
	else
		fprintf(out, ",%" PRId64 ",%.0f,%.1f", sum->value, sqrt(sum->variance), sum->samples);
}

static void write_rows(
    FILE *out, const struct traces *t, const struct totals *order, const struct totals *all)
{
	for (size_t i = 0; i < order->count; i++) {
		uint32_t number = order->rows[i].frame;
		const struct frames_row *frame = &t->frames.rows[number];

		write_text(out, frame->name);
		putc(',', out);
		write_text(out, frame->file);
		if (frame->line > 0)
			fprintf(out, ",%" PRId64 ",", frame->line);
		else
			fputs(",,", out);
		write_text(out, frame->module);
		for (int kind = 0; kind < MEASURE_COUNT; kind++) {
			if (!is_written(t, kind))
				continue;
			write_sum(out, t, kind, &all[kind].rows[number].flat);
			write_sum(out, t, kind, &all[kind].rows[number].cum);
		}
		putc('\n', out);
	}
}

/* Rows that are zero in the kind sorted by may not be in another: they come last, by name. */
int csv_write(FILE *out, const struct traces *t, const struct export_request *request)
{
	const size_t column = request->column;
	const enum measure_kind kind = request->kind;
	struct totals all[MEASURE_COUNT] = {0}, order = {0}, rest = {0};
	int err = 0;

	for (int i = 0; i < MEASURE_COUNT && !err; i++)
		if (is_written(t, i))
			err = totals_make(&all[i], t, column, (enum measure_kind)i);
	if (!err)
		err = totals_make(&order, t, column, kind);
	if (!err)
		err = totals_make(&rest, t, column, kind);
	if (!err) {
		for (size_t i = 0; i < rest.count; i++) {
			struct totals_row *row = &rest.rows[i];
			bool here = row->cum.value || row->flat.value, there = false;

			for (int k = 0; k < MEASURE_COUNT; k++)
				there = there || (all[k].rows && all[k].rows[i].cum.value);
			row->flat.value = 0;
			row->cum.value = !here && there;
		}
		totals_sort(&order, t, TOTALS_BY_FLAT);
		totals_sort(&rest, t, TOTALS_BY_FLAT);
		write_head(out, t);
		write_rows(out, t, &order, all);
		write_rows(out, t, &rest, all);
	}
	for (int i = 0; i < MEASURE_COUNT; i++)
		totals_fini(&all[i]);
	totals_fini(&order);
	totals_fini(&rest);
	return err;
}
