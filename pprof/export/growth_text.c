/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/export/growth_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "pprof/model/estimate.h"
#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/short_name.h"
#include "pprof/text/text.h"
#include "pprof/text/utf8.h"

enum { SECONDS_A_DAY = 86400 };

const char *growth_text_clock(int64_t time_ns, double series_s, char text[GROWTH_TEXT_BYTES])
{
	return clock_text(
	    time_ns, series_s >= SECONDS_A_DAY ? "%Y-%m-%d %H:%M" : "%H:%M:%S", text, GROWTH_TEXT_BYTES);
}

const char *growth_text_rate(double bytes_per_s, char text[GROWTH_TEXT_BYTES])
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"a second", 1}, {"a minute", 60}, {"an hour", 3600}, {"a day", SECONDS_A_DAY}};
	enum { UNITS = sizeof(units) / sizeof(*units), READABLE_BYTES = 64 * 1024 };
	char amount[AMOUNT_BYTES];
	int unit = 0;

	while (unit + 1 < UNITS && bytes_per_s * units[unit].seconds < READABLE_BYTES)
		unit++;
	snprintf(text, GROWTH_TEXT_BYTES, "%s %s", amount_bytes(bytes_per_s * units[unit].seconds, amount),
	    units[unit].name);
	return text;
}

const char *growth_text_span(double span_s, char text[GROWTH_TEXT_BYTES])
{
	if (span_s < 120)
		snprintf(text, GROWTH_TEXT_BYTES, "%.0f s", span_s);
	else if (span_s < 7200)
		snprintf(text, GROWTH_TEXT_BYTES, "%.0f min", span_s / 60);
	else
		snprintf(text, GROWTH_TEXT_BYTES, "%.0f h", span_s / 3600);
	return text;
}

const char *growth_text_error(double value, double variance, char text[GROWTH_TEXT_BYTES])
{
	const double percent = value != 0 ? 100 * sqrt(fmax(variance, 0)) / fabs(value) : 0;

	text[0] = '\0';
	if (percent > 0)
		snprintf(text, GROWTH_TEXT_BYTES, percent < 9.95 ? " +- %.1f %%" : " +- %.0f %%", percent);
	return text;
}

/* ---- what changed */

enum { NAMED_MOST = 2, NAME_COLUMNS = 72, NAME_BYTES = 4 * NAME_COLUMNS + 8 };

/* A row that changed by less than this part of the whole is not what the change is about. */
#define PART_LEAST 0.1

static const char *subject(const struct traces *t, enum measure_kind kind)
{
	static const char *const words[MEASURE_COUNT] = {[MEASURE_INUSE] = "In use",
	    [MEASURE_INUSE_OBJECTS] = "Objects in use",
	    [MEASURE_ALLOC] = "Bytes allocated",
	    [MEASURE_OBJECTS] = "Allocations",
	    [MEASURE_FREED] = "Objects freed",
	    [MEASURE_TEMPORARY] = "Objects freed soon"};

	return kind == MEASURE_OTHER ? t->types[t->default_type] : words[kind];
}

static double change_of(const struct column_diff_sum *sum)
{
	return sum->after - sum->before;
}

/* The next largest change in the direction of the whole, smaller than that of `above`. NULL for above: the
 * largest. */
static const struct column_diff_row *next_row(
    const struct column_diff *compared, bool is_known, const struct column_diff_row *above)
{
	const double all = change_of(&compared->sum);
	const struct column_diff_row *found = NULL;

	for (size_t i = 0; i < compared->count; i++) {
		const struct column_diff_row *row = &compared->rows[i];
		const double change = change_of(&row->flat);

		if (change * all < PART_LEAST * all * all ||
		    (is_known && !column_diff_is_sure(&row->flat, compared->threshold)) || row == above ||
		    (above && fabs(change) > fabs(change_of(&above->flat))))
			continue;
		if (!found || fabs(change) > fabs(change_of(&found->flat)))
			found = row;
	}
	return found;
}

static void append_signed(char *text, const struct traces *t, enum measure_kind kind, double value)
{
	char amount[AMOUNT_BYTES];

	text_append(text, CHANGE_TEXT_BYTES, "%s%s", value > 0 ? "+" : "",
	    amount_measure(value, traces_unit(t, kind), amount));
}

void change_text(char text[CHANGE_TEXT_BYTES], const char **function, const struct traces *t,
    enum measure_kind kind, const struct column_diff *compared)
{
	const bool is_known = !t->unsure && kind != MEASURE_OTHER;
	const double change = change_of(&compared->sum);
	const bool is_sure = is_known && column_diff_is_sure(&compared->sum, estimate_threshold(1));
	const struct column_diff_row *row = NULL;
	char amount[AMOUNT_BYTES], error[GROWTH_TEXT_BYTES] = "", name[NAME_BYTES];

	text[0] = '\0';
	*function = "";
	if (change == 0) {
		text_append(text, CHANGE_TEXT_BYTES, "%s: no change in all.", subject(t, kind));
		return;
	}
	if (is_known)
		growth_text_error(change, compared->sum.variance, error);
	text_append(text, CHANGE_TEXT_BYTES, "%s %s by %s%s%s", subject(t, kind),
	    change > 0 ? "rose" : "fell", amount_measure(fabs(change), traces_unit(t, kind), amount), error,
	    !is_known || compared->sum.variance <= 0 ? ""
	        : is_sure                            ? ", more than chance"
	                                             : ", no more than chance");
	for (int i = 0; i < NAMED_MOST && (!is_known || is_sure); i++) {
		row = next_row(compared, is_known, row);
		if (!row)
			break;
		short_name_fit(t->frames.rows[row->frame].label, NAME_COLUMNS, "...", name, sizeof(name));
		text_append(text, CHANGE_TEXT_BYTES, "%s%s ", i ? ", " : ": ", name);
		append_signed(text, t, kind, change_of(&row->flat));
		if (!i)
			*function = t->frames.rows[row->frame].name;
	}
	text_append(text, CHANGE_TEXT_BYTES, ".");
	text[utf8_valid_prefix(text, strlen(text))] = '\0'; /* it may be cut */
}
