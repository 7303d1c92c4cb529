/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/report.h"

#include "pprof/analysis/totals.h"
#include "sampler/cli/status.h"
#include "sampler/report/no_match.h"
#include "sampler/report/operands.h"
#include "sampler/terminal/amount.h"
#include "pprof/text/log_line.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS_SECTION = 10, ROWS_SORTED = 25, ROWS_LEAST = 5, SAMPLES_MANY = 30, TIME_COLUMNS = 28 };
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

/* ---- header */

static void print_time(const struct screen *screen, int64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	char text[64];
	struct tm tm;

	if (time_ns > 0 && localtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm))
		fprintf(screen->out, "  %s", text);
}

static void print_estimate(const struct screen *screen, const struct traces *t, double value, double variance,
    const char *(*print)(double value, char text[AMOUNT_BYTES]))
{
	char text[AMOUNT_BYTES];

	fputs(print(value, text), screen->out);
	if (!t->unsure && variance > 0)
		fprintf(screen->out, " +- %s", print(sqrt(variance), text));
}

/* "in use     12.3 MiB +- 0.4 MiB in 98123 +- 1200 objects; selected: 1.2 MiB +- 0.1 MiB" */
static void print_sum(const struct screen *screen, const struct profile_input *input, size_t column,
    const char *what, enum measure_kind bytes, enum measure_kind objects)
{
	const struct traces *t = &input->traces;
	int64_t shown = 0;

	if (!traces_has(t, bytes))
		return;
	for (size_t row = 0; row < t->row_count; row++)
		traces_sum(&shown, traces_value(t, row, column, bytes));
	fprintf(screen->out, "  %-10s ", what);
	if (!t->unsure && input->crowds[column].period_most > 1 && traces_all(t, column, bytes) == 0) {
		fputs("nothing sampled\n", screen->out); /* which is not a measured zero */
		return;
	}
	print_estimate(screen, t, (double)traces_all(t, column, bytes),
	    traces_doubt_all(t, column, bytes).variance, amount_bytes);
	if (traces_has(t, objects)) {
		fputs(" in ", screen->out);
		print_estimate(screen, t, (double)traces_all(t, column, objects),
		    traces_doubt_all(t, column, objects).variance, amount_count);
		fprintf(screen->out, " object%s", traces_all(t, column, objects) == 1 ? "" : "s");
	}
	if (shown != traces_all(t, column, bytes)) {
		fputs("; selected: ", screen->out);
		print_estimate(
		    screen, t, (double)shown, traces_doubt_selected(t, column, bytes).variance, amount_bytes);
	}
	putc('\n', screen->out);
}

/* Of a period of one byte: what is recorded without its stack is said beside it. */
static void describe_every(const struct crowd *crowd, char *line, size_t line_bytes)
{
	snprintf(line, line_bytes, "every allocation recorded");
	if (crowd->lost)
		snprintf(line, line_bytes,
		    "every allocation recorded, %" PRIu64 " of %" PRIu64 " without its stack", crowd->lost,
		    crowd->taken);
}

static void print_samples(const struct screen *screen, const struct origin *origin, const struct crowd *crowd)
{
	char line[1024];

	snprintf(line, sizeof(line), "samples: %s", crowd->samples);
	if (*crowd->samples)
		screen_lines(screen, 2, line);
	if (*origin->attached) {
		snprintf(line, sizeof(line), "attached %s, and not in these numbers", origin->attached);
		screen_lines(screen, 2, line);
	}
	if (*origin->unseen) {
		snprintf(line, sizeof(line), "not seen: %s", origin->unseen);
		screen_lines(screen, 2, line);
	}
}

static void print_period(
    const struct screen *screen, const struct origin *origin, const struct crowd *crowd, bool heap)
{
	char text[AMOUNT_BYTES], most[AMOUNT_BYTES], line[1024];

	if (strcmp(origin->period_unit, "bytes") == 0 && crowd->period_least != crowd->period_most)
		snprintf(line, sizeof(line), "a sample every %s to %s on average, by process",
		    amount_bytes((double)crowd->period_least, text),
		    amount_bytes((double)crowd->period_most, most));
	else if (strcmp(origin->period_unit, "bytes") == 0 && origin->period == 1)
		describe_every(crowd, line, sizeof(line));
	else if (strcmp(origin->period_unit, "bytes") == 0 && origin->period > 0)
		snprintf(line, sizeof(line), "a sample every %s on average",
		    amount_bytes((double)origin->period, text));
	else if (!heap && origin->period == 1 && strcmp(origin->period_unit, "count") == 0)
		snprintf(line, sizeof(line), "every occurrence of %s recorded", origin->period_type);
	else if (!heap && origin->period > 0)
		snprintf(line, sizeof(line), "a sample every %s%s %s; no standard errors are given for it",
		    amount_measure((double)origin->period, origin->period_unit, text),
		    strcmp(origin->period_unit, "count") == 0 ? "" : " of", origin->period_type);
	else
		strcpy(line, "no sampling period in the profile: no standard errors can be given");
	screen_lines(screen, 2, line);
	print_samples(screen, origin, crowd);
}

/* Advice for a user who sees only "1 sample" in every row. By the peak if there is one, as at the end of
 * record: a smaller period does not help where little is left at the end. */
static void print_advice(const struct screen *screen, const struct profile_input *input)
{
	const struct traces *t = &input->traces;
	enum measure_kind kind = traces_default_kind(t);
	const size_t column = input->has_peak ? input->peak : input->now;
	double samples = 0, variance = 0;

	for (size_t row = 0; row < t->row_count; row++) {
		struct traces_doubt doubt = traces_doubt(t, row, column, kind);

		samples += doubt.samples;
		variance += doubt.variance;
	}
	const struct origin *origin = &input->origins[input->now];
	const int64_t period = origin->period / 32; /* 16K after the default of 512K */
	char line[128];

	if (!origin->ours || t->unsure || variance <= 0 || samples >= SAMPLES_MANY || period < 1 ||
	    strcmp(origin->period_unit, "bytes") != 0)
		return;
	snprintf(line, sizeof(line),
	    "few samples: record with a smaller period for more, such as -p %" PRId64 "%s",
	    period < 1024 ? period : period / 1024, period < 1024 ? "" : "K");
	screen_lines(screen, 2, line);
}

/* Which of the profiles the numbers are of, in words. */
static void print_states(const struct screen *screen, const struct profile_input *input)
{
	const struct crowd *crowd = &input->crowds[input->now];
	const char *end = crowd->ended ? "end" : "newest snapshot";

	if (input->state == READ_DELTA && crowd->file_count > 1)
		fprintf(screen->out, "  %zu deltas added up: what was allocated in these intervals\n",
		    crowd->file_count);
	else if (input->state == READ_ALL && crowd->file_count > 1)
		fprintf(screen->out, "  %zu profiles of %zu process%s added up\n", crowd->file_count,
		    crowd->process_count, crowd->process_count == 1 ? "" : "es");
	else if (crowd->process_count > 1 && input->state == READ_PEAK)
		fputs("  each at its own peak, added up\n", screen->out);
	else if (crowd->process_count > 1 && crowd->ended == crowd->file_count)
		fputs("  each at its end, added up\n", screen->out);
	else if (crowd->process_count > 1)
		fprintf(screen->out, "  the newest profile of each, added up; %zu of them at their end\n",
		    crowd->ended);
	else if (input->now == input->peak && input->state == READ_PEAK && !input->has_peak)
		fprintf(screen->out,
		    "  the largest of %zu snapshots of this process; it has no peak profile\n",
		    input->series_count);
	else if (input->series_count > 1)
		fprintf(screen->out, "  the last of %zu snapshots of this process%s\n", input->series_count,
		    input->has_peak ? ", and its peak" : "");
	else if (input->has_peak && input->traces.column_count > 1)
		fprintf(screen->out, "  peak and %s of one process\n", end);
}

/* What to do for names: nothing, if they were looked up and not found. */
static void print_names_hint(const struct screen *screen, const struct profile_input *input)
{
	static const char nameless[] = "no function names in this profile";
	const char *path = input->nameless, *ending = path ? strstr(path, OPERANDS_SYMBOLIZED) : NULL;
	char line[PATH_MAX + 128], named[PATH_MAX];

	if (!path)
		return;
	snprintf(named, sizeof(named), "%s" OPERANDS_SYMBOLIZED, path);
	if (ending && !ending[strlen(OPERANDS_SYMBOLIZED)])
		snprintf(line, sizeof(line), "%s: heaptap symbolize found none on its machine", nameless);
	else if (access(named, R_OK) == 0)
		snprintf(line, sizeof(line), "%s, but in its other file: heaptap report %s", nameless, named);
	else
		snprintf(line, sizeof(line), "%s: heaptap symbolize %s", nameless, path);
	screen_lines(screen, 2, line);
}

static void print_header(const struct screen *screen, const struct profile_input *input)
{
	const struct origin *origin = &input->origins[input->now];
	const struct crowd *crowd = &input->crowds[input->now];
	const struct traces *t = &input->traces;
	char text[512];

	fputs(screen_style(screen, SCREEN_HEAD), screen->out);
	if (crowd->process_count > 1)
		screen_text(
		    screen, crowd_describe(crowd, text, sizeof(text)), screen_room(screen, TIME_COLUMNS));
	else if (*origin->merged)
		screen_text(screen, origin->merged, 0);
	else
		screen_text(screen, *origin->program ? origin->program : "unknown program", 0);
	fputs(screen_style(screen, SCREEN_PLAIN), screen->out);
	if (crowd->process_count == 1 && origin->pid && !*origin->merged)
		fprintf(screen->out, "  pid %d", (int)origin->pid);
	print_time(screen, origin->time_ns);
	putc('\n', screen->out);
	if (*origin->cause && crowd->process_count == 1 && !*origin->merged)
		screen_lines(screen, 2, origin->cause);
	print_states(screen, input);
	if (input->unread_count)
		fprintf(screen->out, "  INCOMPLETE: %zu that could not be read %s not in these numbers\n",
		    input->unread_count, input->unread_count == 1 ? "is" : "are");
	print_period(screen, origin, crowd, !traces_has(t, MEASURE_OTHER));
	print_sum(screen, input, input->now,
	    input->now == input->peak && input->state == READ_PEAK ? "at peak" : "in use", MEASURE_INUSE,
	    MEASURE_INUSE_OBJECTS);
	if ((crowd->process_count > 1 || *origin->merged) && crowd->inherited_bytes > 0)
		fprintf(screen->out,
		    "  of that    %s inherited by fork: each process that has it counts it\n",
		    amount_bytes((double)crowd->inherited_bytes, text));
	if (t->overlap.is_bound)
		screen_lines(screen, 2,
		    "errors are upper limits: the profiles do not say which inherited blocks are the same");
	if (input->has_peak && input->peak != input->now)
		print_sum(screen, input, input->peak, crowd->process_count > 1 ? "at peaks" : "at peak",
		    MEASURE_INUSE, MEASURE_INUSE_OBJECTS);
	print_sum(screen, input, input->now, "allocated", MEASURE_ALLOC, MEASURE_OBJECTS);
	print_advice(screen, input);
	print_names_hint(screen, input);
}

/* ---- tables */

static void print_value(const struct screen *screen, const struct traces *t, enum measure_kind kind,
    const struct totals_sum *sum, double all)
{
	char value[AMOUNT_BYTES], doubt[AMOUNT_BYTES];

	amount_measure((double)sum->value, traces_unit(t, kind), value);
	amount_doubt(
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

/* The second column's error is left out: 80 columns leave no room for it, --json has it. */
static void print_row(const struct table *table, const struct totals_row *row)
{
	const struct screen *screen = table->screen;
	const struct traces *t = table->traces;
	bool cum = table->cum;
	const struct totals_sum *first = cum ? &row->cum : &row->flat, *second = cum ? &row->flat : &row->cum;
	bool few = !t->unsure && first->variance > 0 && first->samples < ESTIMATE_FEW_SAMPLES - 0.5;
	char value[AMOUNT_BYTES];

	fputs(few ? screen_style(screen, SCREEN_DIM) : "", screen->out);
	print_value(screen, t, table->kind, first, table->all);
	fprintf(screen->out, " %10s  ",
	    amount_measure((double)second->value, traces_unit(t, table->kind), value));
	if (cum)
		report_frame(screen, t, row->frame, screen_room(screen, 40));
	else
		report_frame_callers(screen, t, table->values, row->frame, 40);
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
	fprintf(screen->out, " %10s  %zu more (-n all)\n", "", count - shown);
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
	if (count)
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

static int print_sections(
    const struct screen *screen, const struct profile_input *input, const struct read_options *read)
{
	size_t most = read->rows ? (size_t)read->rows : ROWS_SECTION;
	int status = 0;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections) && !status; i++) {
		if (!traces_has(&input->traces, sections[i].kind))
			continue;
		status = print_table(screen, input, read, &sections[i], input->now, most);
		if (i == 0 && input->has_peak && input->peak != input->now && !status) {
			const struct section peak = {MEASURE_INUSE,
			    input->crowds[input->peak].process_count > 1
			        ? "Most in use at the peak of each process (bytes)"
			        : "Most in use at the peak (bytes)"};

			status = print_table(screen, input, read, &peak, input->peak, most);
		}
	}
	if (!status)
		status = report_growth(screen, input, read->rows ? read->rows : ROWS_SECTION);
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

static int print_report(
    const struct screen *screen, const struct profile_input *input, const struct options *options)
{
	const struct read_options *read = &options->read;

	char line[1024];

	if (!read->json)
		print_header(screen, input);
	else
		no_match_say(&input->traces, read);
	if (!read->json && no_match_describe(&input->traces, read, line, sizeof(line))) {
		putc('\n', screen->out);
		screen_lines(screen, 0, line);
		return 0;
	}
	if (read->leaks)
		return report_leaks(screen, input, options);
	if (read->tree || read->inverted)
		return report_tree(screen, input, read);
	if (read->json)
		return report_json(screen, input, read);
	if (read->sort != SORT_DEFAULT)
		return print_sorted(screen, input, read);
	return print_sections(screen, input, read);
}

/* --fail-over for the sum after filters; --leaks has its own check, without suppressed stacks. */
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

int report_run(struct options *options)
{
	struct profile_input input;
	struct screen screen;
	int status;

	if (options->read.suppressions && !options->read.leaks) {
		log_line("--suppressions needs --leaks");
		return STATUS_USAGE;
	}
	status = profile_input_open(&input, options, true);

	if (!status &&
	    screen_open(&screen, options->output, !options->read.no_pager, options->read.memory_max_bytes) ==
	        0) {
		status = print_report(&screen, &input, options);
		if (!status)
			status = check_limit(&input, &options->read);
		status = screen_close(&screen, status);
		if (!status && input.unread_count)
			status = 1;
	}
	profile_input_close(&input);
	return status;
}
