/* SPDX-License-Identifier: Apache-2.0 */
/* What grows over a series of snapshots, and since when. */
#include "sampler/cmd/report/report.h"

#include "pprof/analysis/growth.h"
#include "pprof/export/growth_text.h"
#include "pprof/export/traces_json.h"
#include "pprof/model/estimate.h"
#include "pprof/text/amount.h"
#include "pprof/text/log_line.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static double series_s(const struct profile_input *input)
{
	const int64_t *times_ns = input->growth_times_ns;

	return ((double)times_ns[input->growth_count - 1] - (double)times_ns[0]) / 1e9;
}

static const char *since_text(
    const struct profile_input *input, const struct growth_row *row, char text[4 * GROWTH_TEXT_BYTES])
{
	char since[GROWTH_TEXT_BYTES], until[GROWTH_TEXT_BYTES], rate[GROWTH_TEXT_BYTES];

	growth_text_clock(row->since_ns, series_s(input), since);
	if (row->trend.kind == TREND_GROWS)
		snprintf(text, 4 * GROWTH_TEXT_BYTES, "since %s, %s", since,
		    growth_text_rate(row->trend.bytes_per_s, rate));
	else
		snprintf(text, 4 * GROWTH_TEXT_BYTES, "from %s to %s, no more since", since,
		    growth_text_clock(row->until_ns, series_s(input), until));
	return text;
}

/* The function, and its callers by how much more they hold than at the beginning. */
static int print_function(
    const struct screen *screen, const struct profile_input *input, const struct growth_row *row, int used)
{
	const struct traces *t = profile_input_tables(input);
	double *values = calloc((size_t)t->row_count + 1, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < t->row_count; i++)
		values[i] = fmax(0,
		    (double)traces_value(t, i, row->until_column, MEASURE_INUSE) -
		        (double)traces_value(t, i, row->since_column, MEASURE_INUSE));
	if (row->is_caller)
		report_frame(screen, t, row->frame, screen_room(screen, used));
	else
		report_frame_callers(screen, t, values, row->frame, used);
	free(values);
	return 0;
}

static int print_row(
    const struct screen *screen, const struct profile_input *input, const struct growth_row *row)
{
	enum { INDENT = 22 };
	char amount[AMOUNT_BYTES], doubt[AMOUNT_BYTES], since[4 * GROWTH_TEXT_BYTES];
	char line[8 * GROWTH_TEXT_BYTES];
	int err;

	fprintf(screen->out, "%10s %9s  ", amount_bytes(row->trend.bytes, amount),
	    estimate_doubt(row->trend.bytes, row->samples, row->trend.variance, false, doubt));
	err = print_function(screen, input, row, INDENT);
	snprintf(line, sizeof(line), "%s%s, %s in use now",
	    row->is_caller ? "several functions below it together, " : "", since_text(input, row, since),
	    amount_bytes(row->inuse_bytes, amount));
	fprintf(screen->out, "\n%s", screen_style(screen, SCREEN_DIM));
	screen_lines(screen, INDENT, line);
	fputs(screen_style(screen, SCREEN_PLAIN), screen->out);
	return err;
}

static void print_total(
    const struct screen *screen, const struct profile_input *input, const struct growth *growth)
{
	const struct trend *trend = &growth->total.trend;
	char amount[AMOUNT_BYTES], since[4 * GROWTH_TEXT_BYTES];

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

int report_growth(
    const struct screen *screen, const struct profile_input *input, const struct growth *growth, int32_t rows)
{
	const size_t growing = growth->growing_count, rose = growth->count - growing, most = (size_t)rows;
	int err = print_rows(
	    screen, input, growth->rows, growing, most, "Growing, by more than chance (bytes in use)");

	if (growing && !err)
		print_total(screen, input, growth);
	if (!err)
		err = print_rows(
		    screen, input, growth->rows + growing, rose, most, "Rose, and stayed (bytes in use)");
	if (!err)
		return 0;
	log_line("not enough memory");
	return 1;
}

void report_json_growth(
    struct json *json, const struct profile_input *input, const struct report_answer *answer)
{
	if (!answer->has_growth || answer->growth.point_count < TREND_POINTS_LEAST)
		return;
	json_object(json, "growth_total");
	traces_json_trend(json, &answer->growth.total);
	json_end(json);
	traces_json_growth(json, "growth", profile_input_tables(input), &answer->growth, 0);
}
