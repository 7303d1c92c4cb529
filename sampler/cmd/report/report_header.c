/* SPDX-License-Identifier: Apache-2.0 */
/* What a report begins with: whose profile it is, how it was sampled, and the sums with their errors. */
#include "sampler/cmd/report/report.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/text.h"
#include "sampler/cmd/report/operands.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	SAMPLES_MANY = 30,
	ERROR_SHARE = 10, /* a value with a tenth as its error is sure enough; both as in record's summary */
	TIME_COLUMNS = 28
};

static void print_time(const struct screen *screen, int64_t time_ns)
{
	char text[64];

	if (*clock_text(time_ns, "%Y-%m-%d %H:%M:%S %Z", text, sizeof(text)))
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
	if (!t->unsure && input->sets[column].period_most > 1 && traces_all(t, column, bytes) == 0) {
		fputs("nothing sampled\n", screen->out); /* this is not a measured zero */
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

/* At a period of one byte everything is recorded; what has no stack is said beside it. */
static void describe_every(const struct process_set *set, char *line, size_t line_bytes)
{
	const bool attached = set->gaps & ORIGIN_GAP_ATTACHED, taken_over = set->gaps & ORIGIN_GAP_TAKEN_OVER;

	snprintf(line, line_bytes, "every allocation recorded");
	if (attached || taken_over)
		text_append(line, line_bytes, " since %s%s%s", attached ? "heaptap attached" : "",
		    attached && taken_over ? " or " : "", taken_over ? "a daemon took over" : "");
	if (set->gaps & ORIGIN_GAP_PAUSED)
		text_append(line, line_bytes, ", but not during pauses");
	if (set->gaps & ORIGIN_GAP_LIMITED)
		text_append(line, line_bytes, ", but not since a limit of memory left no room for heaptap");
	if (set->lost)
		text_append(line, line_bytes, ", %" PRIu64 " of %" PRIu64 " without its stack", set->lost,
		    set->taken);
}

/* "; 949 samples, 2 of them without a stack"; "" unknown. */
static void append_count(const struct process_set *set, char *line, size_t line_bytes)
{
	if (!*set->samples || !set->taken)
		return;
	text_append(line, line_bytes, "; %" PRIu64 " sample%s", set->taken, set->taken == 1 ? "" : "s");
	if (set->lost)
		text_append(line, line_bytes, ", %" PRIu64 " of them without a stack", set->lost);
}

/* How the samples were taken, for users who look at heaptap itself. */
static void print_sampling(
    const struct screen *screen, const struct origin *origin, const struct process_set *set)
{
	char line[1024];

	snprintf(line, sizeof(line), "samples: %s", set->samples);
	if (*set->samples)
		screen_lines(screen, 2, line);
	if (*origin->taken_over) {
		snprintf(line, sizeof(line), "taken over %s", origin->taken_over);
		screen_lines(screen, 2, line);
	}
}

static void print_period(
    const struct screen *screen, const struct origin *origin, const struct process_set *set, bool heap)
{
	char text[AMOUNT_BYTES], most[AMOUNT_BYTES], line[1024];

	if (strcmp(origin->period_unit, "bytes") == 0 && set->period_least != set->period_most)
		snprintf(line, sizeof(line), "a sample every %s to %s on average, by process",
		    amount_bytes((double)set->period_least, text),
		    amount_bytes((double)set->period_most, most));
	else if (strcmp(origin->period_unit, "bytes") == 0 && origin->period == 1)
		describe_every(set, line, sizeof(line));
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
	if (origin->period != 1 || set->period_least != set->period_most)
		append_count(set, line, sizeof(line));
	screen_lines(screen, 2, line);
	if (*origin->attached) {
		snprintf(line, sizeof(line), "attached %s, and not in these numbers", origin->attached);
		screen_lines(screen, 2, line);
	}
}

/* Advice where the numbers are of few samples. It goes by the peak if there is one, as record's summary does:
 * a smaller period does not help if little is left at the end. Few samples of large blocks may be enough. */
static void print_advice(const struct screen *screen, const struct profile_input *input)
{
	const struct traces *t = &input->traces;
	const enum measure_kind kind = traces_default_kind(t);
	const size_t column = input->has_peak ? input->peak : input->now;
	const struct traces_doubt doubt = traces_doubt_selected(t, column, kind);
	const struct origin *origin = &input->origins[input->now];
	const int64_t period = origin->period / 32; /* 16K after the default of 512K */
	double value = 0;
	char line[128];

	for (size_t row = 0; row < t->row_count; row++)
		value += (double)traces_value(t, row, column, kind);
	if (!origin->ours || t->unsure || doubt.variance <= 0 || doubt.samples >= SAMPLES_MANY ||
	    period < 1 || strcmp(origin->period_unit, "bytes") != 0 || *origin->unseen ||
	    sqrt(doubt.variance) <= value / ERROR_SHARE)
		return;
	snprintf(line, sizeof(line),
	    "few samples of what is in use (%.0f): record with a smaller period for more, such as -p %" PRId64
	    "%s",
	    fmax(doubt.samples, 1), period < 1024 ? period : period / 1024, period < 1024 ? "" : "K");
	screen_lines(screen, 2, line);
}

/* Says which of the profiles the numbers are of. */
static void print_states(const struct screen *screen, const struct profile_input *input)
{
	const struct process_set *set = &input->sets[input->now];
	const char *end = set->ended ? "end" : "newest snapshot";

	if (input->state == READ_DELTA && set->file_count > 1)
		fprintf(screen->out, "  %zu deltas added up: what was allocated in these intervals\n",
		    set->file_count);
	else if (input->state == READ_ALL && set->file_count > 1)
		fprintf(screen->out, "  %zu profiles of %zu process%s added up\n", set->file_count,
		    set->process_count, set->process_count == 1 ? "" : "es");
	else if (set->process_count > 1 && input->state == READ_PEAK)
		fputs("  each at its own peak, added up\n", screen->out);
	else if (set->process_count > 1 && set->ended == set->file_count)
		fprintf(screen->out, "  each at its end%s, added up\n",
		    set->detached ? ", or when heaptap detached" : "");
	else if (set->process_count > 1 && set->ended)
		fprintf(screen->out, "  the newest state of each, added up; %zu of them at %s end\n",
		    set->ended, set->ended == 1 ? "its" : "their");
	else if (set->process_count > 1)
		fprintf(screen->out, "  %zu running processes, added up\n", set->process_count);
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

/* Says how to get names. Nothing if they were looked up and not found. */
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

void report_header(const struct screen *screen, const struct profile_input *input, bool is_verbose)
{
	const struct origin *origin = &input->origins[input->now];
	const struct process_set *set = &input->sets[input->now];
	const struct traces *t = &input->traces;
	char text[512];

	fputs(screen_style(screen, SCREEN_HEAD), screen->out);
	if (set->process_count > 1)
		screen_text(
		    screen, process_set_describe(set, text, sizeof(text)), screen_room(screen, TIME_COLUMNS));
	else if (*origin->merged)
		screen_text(screen, origin->merged, 0);
	else
		screen_text(screen, *origin->name ? origin->name : "unknown program", 0);
	fputs(screen_style(screen, SCREEN_PLAIN), screen->out);
	if (set->process_count == 1 && origin->pid && !*origin->merged)
		fprintf(screen->out, "  pid %d", (int)origin->pid);
	print_time(screen, origin->time_ns);
	putc('\n', screen->out);
	if (*origin->cause && set->process_count == 1 && !*origin->merged)
		screen_lines(screen, 2, origin->cause);
	print_states(screen, input);
	if (input->unread_count)
		fprintf(screen->out, "  INCOMPLETE: %zu that could not be read %s not in these numbers\n",
		    input->unread_count, input->unread_count == 1 ? "is" : "are");
	print_period(screen, origin, set, !traces_has(t, MEASURE_OTHER));
	if (is_verbose)
		print_sampling(screen, origin, set);
	print_sum(screen, input, input->now,
	    input->now == input->peak && input->state == READ_PEAK ? "at peak" : "in use", MEASURE_INUSE,
	    MEASURE_INUSE_OBJECTS);
	if ((set->process_count > 1 || *origin->merged) && set->inherited_bytes > 0)
		fprintf(screen->out, "  of that    %s counted more than once (shared after fork)\n",
		    amount_bytes((double)set->inherited_bytes, text));
	if (t->is_bound)
		screen_lines(screen, 2,
		    "errors are upper limits: the profiles do not say which inherited blocks are the same");
	if (input->has_peak && input->peak != input->now)
		print_sum(screen, input, input->peak, set->process_count > 1 ? "at peaks" : "at peak",
		    MEASURE_INUSE, MEASURE_INUSE_OBJECTS);
	print_sum(screen, input, input->now, "allocated", MEASURE_ALLOC, MEASURE_OBJECTS);
	print_advice(screen, input);
	print_names_hint(screen, input);
}
