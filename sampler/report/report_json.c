/* SPDX-License-Identifier: Apache-2.0 */
/* A report for programs: everything that the text says, unrounded, and of every function. */
#include "sampler/report/report.h"

#include "pprof/growth.h"
#include "pprof/json.h"
#include "pprof/totals.h"
#include "sampler/terminal/log_line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool is_written(const struct traces *t, int kind)
{
	return traces_has(t, (enum measure_kind)kind) && kind != MEASURE_TEMPORARY;
}

static void write_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",\n\"%s\":", name);
	json_string(out, value);
}

void report_json_head(FILE *out, const struct profile_input *input)
{
	const struct origin *origin = &input->origins[input->now];

	fputs("{\"heaptap\":\"" HEAPTAP_VERSION "\"", out);
	write_member(out, "program", origin->program);
	fprintf(out, ",\n\"pid\":%d", (int)origin->pid);
	write_member(out, "host", origin->host);
	fprintf(out, ",\n\"time_ns\":%" PRId64 ",\n\"duration_ns\":%" PRId64, origin->time_ns,
	    origin->duration_ns);
	write_member(out, "cause", origin->cause);
	write_member(out, "samples", origin->samples);
	write_member(out, "not_seen", origin->unseen);
	fprintf(out, ",\n\"period\":%" PRId64, origin->period);
	write_member(out, "period_unit", origin->period_unit);
	fprintf(out, ",\n\"profiles\":%zu,\n\"snapshots\":%zu", input->file_count, input->series_count);
}

static void write_sum(
    FILE *out, const struct traces *t, int kind, const char *name, const struct totals_sum *sum)
{
	fprintf(out, "\"%s\":%" PRId64, name, sum->value);
	if (!t->unsure && kind != MEASURE_OTHER)
		fprintf(out, ",\"%s_error\":%.1f,\"%s_samples\":%.1f", name, sqrt(sum->variance), name,
		    sum->samples);
}

static void write_totals(FILE *out, const struct profile_input *input, const struct totals *all)
{
	const struct traces *t = &input->traces;
	const char *comma = "";

	fputs(",\n\"totals\":{", out);
	for (int kind = 0; kind < MEASURE_COUNT; kind++) {
		if (!is_written(t, kind))
			continue;
		fputs(comma, out);
		json_string(out, t->types[t->kinds[kind]]);
		fputs(":{\"unit\":", out);
		json_string(out, measure_unit(t, (enum measure_kind)kind));
		fprintf(out, ",\"all\":%" PRId64 ",", traces_all(t, input->now, (enum measure_kind)kind));
		write_sum(out, t, kind, "selected", &all[kind].sum);
		putc('}', out);
		comma = ",\n";
	}
	putc('}', out);
}

/* Without its closing brace. */
void report_json_frame(FILE *out, const struct traces *t, uint32_t number)
{
	const struct traces_frame *frame = &t->frames[number];

	fputs("{\"name\":", out);
	json_string(out, frame->name);
	fputs(",\"file\":", out);
	json_string(out, frame->file);
	fprintf(out, ",\"line\":%" PRId64 ",\"module\":", frame->line);
	json_string(out, frame->module);
}

void report_json_stack(FILE *out, const struct traces *t, size_t row)
{
	const uint32_t *stack = traces_stack(t, row);

	fputs(",\"stack\":[", out);
	for (uint32_t i = 0; i < t->rows[row].depth; i++) {
		fputs(i ? ",\n" : "\n", out);
		report_json_frame(out, t, stack[i]);
		putc('}', out);
	}
	fputs("]}", out);
}

int report_json_growth(FILE *out, const struct profile_input *input)
{
	struct growth growth;

	if (input->series_count < GROWTH_LEAST_COLUMNS)
		return 0;
	if (growth_make(&growth, &input->traces, input->series_count))
		return -ENOMEM;
	fputs(",\n\"growth\":[", out);
	for (size_t i = 0; i < growth.count; i++) {
		const struct growth_row *row = &growth.rows[i];

		fprintf(out,
		    "%s\n{\"first\":%.0f,\"last\":%.0f,\"change\":%.0f,\"change_error\":%.1f,\"samples\":%."
		    "1f",
		    i ? "," : "", row->first, row->last, row->last - row->first, sqrt(row->variance),
		    row->samples);
		report_json_stack(out, &input->traces, row->row);
	}
	putc(']', out);
	growth_fini(&growth);
	return 0;
}

static void write_function(FILE *out, const struct traces *t, const struct totals *all, uint32_t number)
{
	report_json_frame(out, t, number);
	for (int kind = 0; kind < MEASURE_COUNT; kind++) {
		if (!is_written(t, kind))
			continue;
		putc(',', out);
		json_string(out, t->types[t->kinds[kind]]);
		fputs(":{", out);
		write_sum(out, t, kind, "flat", &all[kind].rows[number].flat);
		putc(',', out);
		write_sum(out, t, kind, "cum", &all[kind].rows[number].cum);
		putc('}', out);
	}
	putc('}', out);
}

/* -n counts here too; without it everything is written. */
int report_json(
    const struct screen *screen, const struct profile_input *input, const struct read_options *read)
{
	const struct traces *t = &input->traces;
	struct totals all[MEASURE_COUNT] = {0}, order = {0};
	enum measure_kind kind;
	size_t column;
	int err = profile_input_kind(input, read->sort, &kind, &column);

	if (err)
		return 1;
	for (int i = 0; i < MEASURE_COUNT && !err; i++)
		if (is_written(t, i))
			err = totals_make(&all[i], t, column, (enum measure_kind)i);
	if (!err)
		err = totals_make(&order, t, column, kind);
	if (!err) {
		totals_sort(&order, t, read->cum ? TOTALS_BY_CUM : TOTALS_BY_FLAT);
		report_json_head(screen->out, input);
		write_totals(screen->out, input, all);
		fputs(",\n\"functions\":[", screen->out);
		for (size_t i = 0; i < order.count && (!read->rows || i < (size_t)read->rows); i++) {
			fputs(i ? ",\n" : "\n", screen->out);
			write_function(screen->out, t, all, order.rows[i].frame);
		}
		putc(']', screen->out);
		err = report_json_growth(screen->out, input);
		fputs("}\n", screen->out);
	}
	if (err)
		log_line("not enough memory");
	for (int i = 0; i < MEASURE_COUNT; i++)
		totals_fini(&all[i]);
	totals_fini(&order);
	return err ? 1 : 0;
}
