/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/report.h"

#include "pprof/analysis/totals.h"
#include "pprof/model/estimate.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/amount.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/report/nothing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS_SECTION = 10, ROWS_SORTED = 25, ROWS_LEAST = 5 };
#define SHARE_LEAST 0.005

struct section {
	enum measure_kind kind;
	const char *title;
};

static const struct section sections[] = {
    {MEASURE_INUSE, "Most in use (bytes)"},
    {MEASURE_ALLOC, "Most allocated (bytes)"},
    {MEASURE_OBJECTS, "Most allocations (objects)"},
    {MEASURE_FREED, "Most freed (objects)"},
    {MEASURE_TEMPORARY, "Most temporary (objects freed soon, by the thread that allocated them)"},
    {MEASURE_OTHER, "Most"},
};

static void print_value(const struct screen *screen, const struct traces *t, enum measure_kind kind,
    const struct totals_sum *sum, double all)
{
	char value[AMOUNT_BYTES], doubt[AMOUNT_BYTES];

	amount_measure((double)sum->value, traces_unit(t, kind), value);
	estimate_doubt(
	    (double)sum->value, sum->samples, sum->variance, t->unsure || kind == MEASURE_OTHER, doubt);
	fprintf(screen->out, "%10s %9s", value, doubt);
	if (all > 0)
		fprintf(screen->out, " %5.1f%%", 100 * (double)sum->value / all);
	else
		fprintf(screen->out, " %6s", "");
}

struct table {
	const struct screen *screen;
	const struct traces *traces;
	enum measure_kind kind;
	double all; /* the sum that shares refer to */
	bool cum;
	double *values; /* by row of the traces, for callers_find() */
};

/* Where a row's name begins, with and without the second column. */
enum { NAME_AT = 40, NAME_AT_NARROW = 29 };

/* The second column has no error, and a screen of 80 columns has no room for the column; --json has both. */
static void print_row(const struct table *table, const struct totals_row *row)
{
	const struct screen *screen = table->screen;
	const struct traces *t = table->traces;
	const bool cum = table->cum, narrow = screen_is_narrow(screen);
	const int name_at = narrow ? NAME_AT_NARROW : NAME_AT;
	const struct totals_sum *first = cum ? &row->cum : &row->flat, *second = cum ? &row->flat : &row->cum;
	bool few = !t->unsure && estimate_is_few((double)first->value, first->samples, first->variance);
	char value[AMOUNT_BYTES];

	fputs(few ? screen_style(screen, SCREEN_DIM) : "", screen->out);
	print_value(screen, t, table->kind, first, table->all);
	if (!narrow)
		fprintf(screen->out, " %10s",
		    amount_measure((double)second->value, traces_unit(t, table->kind), value));
	fputs("  ", screen->out);
	if (cum)
		report_frame(screen, t, row->frame, screen_room(screen, name_at));
	else
		report_frame_callers(screen, t, table->values, row->frame, name_at);
	fprintf(screen->out, "%s\n", few ? screen_style(screen, SCREEN_PLAIN) : "");
}

/* When ordered by flat values, functions with a flat value of zero are left out; --cum shows them. */
static size_t count_rows(const struct totals *totals, bool cum)
{
	size_t count = totals->count;

	while (count && !cum && !totals->rows[count - 1].flat.value)
		count--;
	return count;
}

/* How many rows to print by default: at most `most`, and, after the first few, none that is too small to
 * matter. */
static size_t count_shown(const struct table *table, const struct totals *totals, size_t count, size_t most)
{
	size_t shown = count < most ? count : most;

	while (shown > ROWS_LEAST) {
		const struct totals_row *row = &totals->rows[shown - 1];

		if (fabs((double)(table->cum ? row->cum.value : row->flat.value)) >=
		    SHARE_LEAST * fabs(table->all))
			break;
		shown--;
	}
	return shown;
}

static void print_rest(const struct table *table, const struct totals *totals, size_t shown, size_t count)
{
	const struct screen *screen = table->screen;
	double rest = 0;

	if (shown == count)
		return;
	for (size_t i = shown; i < count; i++)
		rest += (double)totals->rows[i].flat.value;
	fprintf(screen->out, "%10s %9s", "...", "");
	if (table->cum || table->all <= 0)
		fprintf(screen->out, " %6s", "");
	else
		fprintf(screen->out, " %5.1f%%", 100 * rest / table->all);
	fprintf(screen->out, "%*s  %zu more (-n all)\n",
	    screen_is_narrow(screen) ? 0 : NAME_AT - NAME_AT_NARROW, "", count - shown);
}

static int print_table(const struct screen *screen, const struct profile_input *input,
    const struct read_options *read, const struct section *section, size_t column, size_t most)
{
	const struct traces *t = &input->traces;
	struct table table = {
	    screen, t, section->kind, (double)traces_all(t, column, section->kind), read->cum, NULL};
	struct totals totals;
	size_t count, shown;
	int err;

	table.values = calloc((size_t)t->row_count + 1, sizeof(*table.values));
	err = table.values ? totals_make(&totals, t, column, section->kind) : -ENOMEM;
	if (err) {
		free(table.values);
		profile_input_say_memory(read, err);
		return 1;
	}
	for (size_t row = 0; row < t->row_count; row++)
		table.values[row] = (double)traces_value(t, row, column, section->kind);
	totals_sort(&totals, t, read->cum ? TOTALS_BY_CUM : TOTALS_BY_FLAT);
	fprintf(screen->out, "\n%s%s%s%s%s\n", screen_style(screen, SCREEN_HEAD), section->title,
	    section->kind == MEASURE_OTHER ? " " : "",
	    section->kind == MEASURE_OTHER ? t->types[t->default_type] : "",
	    screen_style(screen, SCREEN_PLAIN));
	count = count_rows(&totals, read->cum);
	shown = read->rows ? (count < most ? count : most) : count_shown(&table, &totals, count, most);
	if (count && screen_is_narrow(screen))
		fprintf(screen->out, "%10s %9s %6s  %s\n", read->cum ? "cum" : "flat", "error", "share",
		    report_columns(read));
	else if (count)
		fprintf(screen->out, "%10s %9s %6s %10s  %s\n", read->cum ? "cum" : "flat", "error", "share",
		    read->cum ? "flat" : "cum", report_columns(read));
	for (size_t i = 0; i < shown; i++)
		print_row(&table, &totals.rows[i]);
	print_rest(&table, &totals, shown, count);
	if (!count)
		fputs("  nothing\n", screen->out);
	free(table.values);
	totals_fini(&totals);
	return 0;
}

static int print_sections(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct read_options *read)
{
	size_t most = read->rows ? (size_t)read->rows : ROWS_SECTION;
	int status = 0;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections) && !status; i++) {
		if (!traces_has(&input->traces, sections[i].kind))
			continue;
		status = print_table(screen, input, read, &sections[i], input->now, most);
		if (i == 0 && input->has_peak && input->peak != input->now && !status) {
			const struct section peak = {MEASURE_INUSE,
			    input->sets[input->peak].process_count > 1
			        ? "Most in use at the peak of each process (bytes)"
			        : "Most in use at the peak (bytes)"};

			status = print_table(screen, input, read, &peak, input->peak, most);
		}
	}
	if (!status && answer->has_growth)
		status =
		    report_growth(screen, input, &answer->growth, read->rows ? read->rows : ROWS_SECTION);
	return status;
}

static int print_sorted(
    const struct screen *screen, const struct profile_input *input, const struct read_options *read)
{
	struct section section = {MEASURE_INUSE_OBJECTS, "Most in use (objects)"};
	size_t column, most = read->rows ? (size_t)read->rows : ROWS_SORTED;

	if (profile_input_kind(input, read->sort, &section.kind, &column))
		return 1;
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
		if (sections[i].kind == section.kind)
			section.title = sections[i].title;
	if (read->sort == SORT_PEAK)
		section.title = input->has_peak ? "Most in use at the peak (bytes)"
		                                : "Most in use in the largest snapshot (bytes)";
	return print_table(screen, input, read, &section, column, most);
}

/* ---- the command */

static int print_report(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct options *options)
{
	const struct read_options *read = &options->read;
	char line[1024];
	const bool is_empty = nothing_matches(&input->traces, read, line, sizeof(line));

	if (read->json) {
		nothing_matches_say(&input->traces, read);
	} else {
		/* With suppressions the sentences would be about suppressed stacks. */
		if (!is_empty && !read->leaks)
			report_answer_print(screen, answer);
		report_header(screen, input, options->verbosity > 0);
	}
	if (!read->json && is_empty) {
		putc('\n', screen->out);
		screen_lines(screen, 0, line);
		return 0;
	}
	if (read->timeline)
		return report_timeline(screen, input, answer, read);
	if (read->leaks)
		return report_leaks(screen, input, answer, options);
	if (read->tree || read->inverted)
		return report_tree(screen, input, answer, read);
	if (read->json)
		return report_json(screen, input, answer, read);
	if (read->sort != SORT_DEFAULT)
		return print_sorted(screen, input, read);
	return print_sections(screen, input, answer, read);
}

/* --fail-over for the sum after filters. --leaks has its own check, without suppressed stacks. */
static int check_limit(const struct profile_input *input, const struct read_options *read)
{
	char text[2][AMOUNT_BYTES];
	int64_t sum = 0;

	if (read->leaks)
		return 0;
	for (size_t row = 0; row < input->traces.row_count; row++)
		traces_sum(&sum, traces_value(&input->traces, row, input->now, MEASURE_INUSE));
	if (sum < 0 || (uint64_t)sum <= read->fail_over_bytes)
		return 0;
	log_line("%s in use%s, more than the %s of --fail-over", amount_bytes((double)sum, text[0]),
	    input->state == READ_PEAK ? " at the peak" : "",
	    amount_bytes((double)read->fail_over_bytes, text[1]));
	return STATUS_FAIL_OVER;
}

/* --fail-on growth: it fails too if growth is not known. */
static int check_growth(const struct report_answer *report, const struct read_options *read)
{
	const struct growth *growth = &report->growth;

	if (read->fail_on != FAIL_ON_GROWTH)
		return 0;
	if (!report->has_growth || growth->point_count < TREND_POINTS_LEAST) {
		log_line("--fail-on growth: %s",
		    *report->answer.grows ? report->answer.grows : "these profiles do not say what grows");
		return 1;
	}
	if (!growth->growing_count && growth->total.trend.kind != TREND_GROWS)
		return 0;
	log_line("%s", report->answer.grows);
	return STATUS_FAIL_OVER;
}

int report_run(struct options *options)
{
	struct profile_input input;
	struct report_answer answer = {0};
	struct screen screen;
	int status;

	if (options->read.suppressions && !options->read.leaks) {
		log_line("--suppressions needs --leaks");
		return STATUS_USAGE;
	}
	status = profile_input_open(&input, options, true);
	if (!status && report_answer_make(&answer, &input)) {
		log_line("not enough memory");
		status = 1;
	}
	if (!status &&
	    screen_open(&screen, options->output, !options->read.no_pager, options->read.memory_max_bytes) ==
	        0) {
		status = print_report(&screen, &input, &answer, options);
		if (!status)
			status = check_limit(&input, &options->read);
		if (!status)
			status = check_growth(&answer, &options->read);
		status = screen_close(&screen, status);
		if (!status && input.unread_count)
			status = 1;
	}
	report_answer_fini(&answer);
	profile_input_close(&input);
	return status;
}
