/* SPDX-License-Identifier: Apache-2.0 */
/* What grows over a series of snapshots, and since when. */
#include "sampler/report/report.h"

#include "pprof/analysis/growth.h"
#include "pprof/export/growth_json.h"
#include "pprof/text/log_line.h"
#include "sampler/terminal/amount.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S 1e9
enum { TIME_TEXT_BYTES = 32, SECONDS_A_DAY = 86400 };

/* 0; -ENODATA: these profiles cannot tell, or are too few; -ENOMEM. The caller ends it with growth_fini(). */
static int find(struct growth *growth, const struct profile_input *input)
{
	const int err = growth_make(
	    growth, &input->traces, input->growth_first, input->growth_times_ns, input->growth_count);

	return err ? err : growth->point_count < TREND_POINTS_LEAST ? -ENODATA : 0;
}

/* "12:23:41", or with the date if the series is longer than a day. */
static const char *clock_text(const struct profile_input *input, int64_t time_ns, char text[TIME_TEXT_BYTES])
{
	const int64_t *times_ns = input->growth_times_ns;
	const double series_ns = (double)times_ns[input->growth_count - 1] - (double)times_ns[0];
	const bool is_long = series_ns / NS_PER_S >= SECONDS_A_DAY;
	const time_t seconds = (time_t)(time_ns / (int64_t)NS_PER_S);
	struct tm local;

	if (!localtime_r(&seconds, &local) ||
	    !strftime(text, TIME_TEXT_BYTES, is_long ? "%Y-%m-%d %H:%M" : "%H:%M:%S", &local))
		text[0] = '\0';
	return text;
}

/* "1.2 MiB a minute", in the unit of time that gives a readable number. */
static const char *rate_text(double bytes_per_s, char text[2 * AMOUNT_BYTES])
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", SECONDS_A_DAY}};
	enum { UNITS = sizeof(units) / sizeof(*units) };
	char amount[AMOUNT_BYTES];
	int unit = 0;

	while (unit + 1 < UNITS && bytes_per_s * units[unit].seconds < 64 * 1024)
		unit++;
	snprintf(text, 2 * AMOUNT_BYTES, "%s a %s", amount_bytes(bytes_per_s * units[unit].seconds, amount),
	    units[unit].name);
	return text;
}

static const char *span_text(double seconds, char text[AMOUNT_BYTES])
{
	if (seconds < 120)
		snprintf(text, AMOUNT_BYTES, "%.0f s", seconds);
	else if (seconds < 7200)
		snprintf(text, AMOUNT_BYTES, "%.0f min", seconds / 60);
	else
		snprintf(text, AMOUNT_BYTES, "%.0f h", seconds / 3600);
	return text;
}

/* ---- text */

static const char *since_text(
    const struct profile_input *input, const struct growth_row *row, char text[4 * TIME_TEXT_BYTES])
{
	char since[TIME_TEXT_BYTES], until[TIME_TEXT_BYTES], rate[2 * AMOUNT_BYTES];

	clock_text(input, row->since_ns, since);
	if (row->trend.kind == TREND_GROWS)
		snprintf(text, 4 * TIME_TEXT_BYTES, "since %s, %s", since,
		    rate_text(row->trend.bytes_per_s, rate));
	else
		snprintf(text, 4 * TIME_TEXT_BYTES, "from %s to %s, no more since", since,
		    clock_text(input, row->until_ns, until));
	return text;
}

/* The function, and its callers by how much more they hold than at the beginning. */
static int print_function(
    const struct screen *screen, const struct profile_input *input, const struct growth_row *row, int used)
{
	const struct traces *t = &input->traces;
	double *values = calloc((size_t)t->row_count + 1, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < t->row_count; i++)
		values[i] = fmax(0,
		    (double)traces_value(t, i, row->until_column, MEASURE_INUSE) -
		        (double)traces_value(t, i, row->since_column, MEASURE_INUSE));
	if (row->is_caller) {
		report_frame(screen, t, row->frame, screen_room(screen, used));
		fputs(" (several functions below together)", screen->out);
	} else {
		report_frame_callers(screen, t, values, row->frame, used);
	}
	free(values);
	return 0;
}

static int print_row(
    const struct screen *screen, const struct profile_input *input, const struct growth_row *row)
{
	enum { INDENT = 22 };
	char amount[AMOUNT_BYTES], doubt[AMOUNT_BYTES], since[4 * TIME_TEXT_BYTES];
	int err;

	fprintf(screen->out, "%10s %9s  ", amount_bytes(row->trend.bytes, amount),
	    amount_doubt(row->trend.bytes, row->samples, row->trend.variance, false, doubt));
	err = print_function(screen, input, row, INDENT);
	fprintf(screen->out, "\n%*s%s%s, %s in use now%s\n", INDENT, "", screen_style(screen, SCREEN_DIM),
	    since_text(input, row, since), amount_bytes(row->inuse_bytes, amount),
	    screen_style(screen, SCREEN_PLAIN));
	return err;
}

static void print_total(
    const struct screen *screen, const struct profile_input *input, const struct growth *growth)
{
	const struct trend *trend = &growth->total.trend;
	char amount[AMOUNT_BYTES], since[4 * TIME_TEXT_BYTES];

	if (trend->kind != TREND_NONE)
		fprintf(screen->out, "  in all +%s %s\n", amount_bytes(trend->bytes, amount),
		    since_text(input, &growth->total, since));
}

static int print_rows(const struct screen *screen, const struct profile_input *input,
    const struct growth_row *rows, size_t count, size_t most, const char *title)
{
	int err = 0;

	if (count)
		fprintf(screen->out, "\n%s%s%s\n", screen_style(screen, SCREEN_HEAD), title,
		    screen_style(screen, SCREEN_PLAIN));
	for (size_t i = 0; i < count && i < most && !err; i++)
		err = print_row(screen, input, &rows[i]);
	if (count > most)
		fprintf(screen->out, "%10s %9s  %zu more (-n all)\n", "...", "", count - most);
	return err;
}

static int print(
    const struct screen *screen, const struct profile_input *input, const struct growth *growth, size_t most)
{
	const double seconds =
	    ((double)input->growth_times_ns[input->growth_count - 1] - (double)input->growth_times_ns[0]) /
	    NS_PER_S;
	char span[AMOUNT_BYTES];
	int err;

	if (!growth->growing_count)
		fprintf(screen->out, "\n%sNothing grows by more than chance%s (%zu snapshots in %s)\n",
		    screen_style(screen, SCREEN_HEAD), screen_style(screen, SCREEN_PLAIN),
		    input->growth_count, span_text(seconds, span));
	err = print_rows(screen, input, growth->rows, growth->growing_count, most,
	    "Growing, by more than chance (bytes in use)");
	if (growth->growing_count)
		print_total(screen, input, growth);
	if (!err)
		err = print_rows(screen, input, growth->rows + growth->growing_count,
		    growth->count - growth->growing_count, most, "Rose, and stayed (bytes in use)");
	return err;
}

static void print_too_few(const struct screen *screen, size_t count)
{
	char line[128];

	snprintf(line, sizeof(line),
	    "What grows is not known yet: that takes %d snapshots of the running program, "
	    "and there %s %zu",
	    TREND_POINTS_LEAST, count == 1 ? "is" : "are", count);
	putc('\n', screen->out);
	screen_lines(screen, 0, line);
}

int report_growth(const struct screen *screen, const struct profile_input *input, int32_t rows)
{
	struct growth growth;
	int err;

	if (!traces_has(&input->traces, MEASURE_INUSE) || input->state == READ_DELTA ||
	    input->state == READ_ALL || input->state == READ_PEAK)
		return 0;
	err = find(&growth, input);
	if (err == -ENODATA && !input->traces.unsure)
		print_too_few(screen, growth.point_count);
	else if (!err)
		err = print(screen, input, &growth, (size_t)rows);
	growth_fini(&growth);
	if (err != -ENOMEM)
		return 0;
	log_line("not enough memory");
	return 1;
}

int report_json_growth(struct json *json, const struct profile_input *input)
{
	struct growth growth;
	const int err = find(&growth, input);

	if (!err) {
		json_object(json, "growth_total");
		growth_json_trend(json, &growth.total);
		json_end(json);
		growth_json_rows(json, "growth", &input->traces, &growth, 0);
	}
	growth_fini(&growth);
	return err == -ENOMEM ? err : 0;
}
