/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/export/growth_text.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

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
