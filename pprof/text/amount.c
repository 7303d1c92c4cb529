/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/amount.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *print_value(double value, bool bytes, char text[AMOUNT_BYTES])
{
	static const char *const byte_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	static const char *const count_units[] = {"", "k", "M", "G", "T", "P", "E"};
	double step = bytes ? 1024 : 1000, size = fabs(value);
	size_t unit = 0;

	if (!bytes && size < 1e6) {
		snprintf(text, AMOUNT_BYTES, "%.0f", value);
		return text;
	}
	/* 1023.95 would be printed as 1024.0 */
	for (; size >= step - 0.05 && unit < 6; size /= step)
		unit++;
	snprintf(text, AMOUNT_BYTES, unit ? "%s%.1f%s%s" : "%s%.0f%s%s", value < 0 ? "-" : "", size,
	    bytes ? " " : "", bytes ? byte_units[unit] : count_units[unit]);
	return text;
}

const char *amount_bytes(double bytes, char text[AMOUNT_BYTES])
{
	return print_value(bytes, true, text);
}

const char *amount_count(double count, char text[AMOUNT_BYTES])
{
	return print_value(count, false, text);
}

/* As "3.4 s" up to a day or so, hours above: so that any 64-bit number of nanoseconds fits ten columns. */
static const char *print_time(double value_ns, char text[AMOUNT_BYTES])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double size = fabs(value_ns);
	size_t unit = 0;

	for (; size >= 999.95 && unit < 3; size /= 1000)
		unit++;
	if (size >= 99999.95)
		snprintf(text, AMOUNT_BYTES, "%s%.0f h", value_ns < 0 ? "-" : "", size / 3600);
	else
		snprintf(text, AMOUNT_BYTES, "%s%.*f %s", value_ns < 0 ? "-" : "", unit ? 1 : 0, size,
		    units[unit]);
	return text;
}

const char *amount_measure(double value, const char *unit, char text[AMOUNT_BYTES])
{
	if (strcmp(unit, "nanoseconds") == 0)
		return print_time(value, text);
	return print_value(value, strcmp(unit, "bytes") == 0, text);
}
