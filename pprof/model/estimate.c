/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct estimate estimate_of(double bytes, double objects, double size_bytes, double period_bytes)
{
	double size = objects > 0 && bytes > 0 ? bytes / objects : size_bytes > 0 ? size_bytes : 1;
	double count = objects > 0 ? objects : bytes / size, p, spread;

	if (!(bytes > 0 || objects > 0))
		return (struct estimate){0, 0, 0};
	if (period_bytes <= 1)
		return (struct estimate){count, 0, 0};
	p = -expm1(-size / period_bytes);
	spread = (1 - p) / p;
	return (struct estimate){count * p, bytes > 0 ? bytes * size * spread : 0, count * spread};
}

/* By bisection on erfc(), which is fast enough: called once per table. */
double estimate_threshold(double rows)
{
	double share = 0.05 / (rows > 1 ? rows : 1), low = 0, high = 40;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / M_SQRT2) > share)
			low = middle;
		else
			high = middle;
	}
	return high;
}

const char *estimate_doubt(
    double value, double samples, double variance, bool unsure, char text[AMOUNT_BYTES])
{
	double percent = value != 0 ? 100 * sqrt(variance > 0 ? variance : 0) / fabs(value) : 0;

	if (unsure || value == 0)
		text[0] = '\0';
	else if (variance <= 0)
		strcpy(text, "exact");
	else if (percent >= 9999.5)
		strcpy(text, "+->9999%?");
	else
		snprintf(text, AMOUNT_BYTES, percent < 9.95 ? "+-%.1f%%%s" : "+-%.0f%%%s", percent,
		    estimate_is_few(value, samples, variance) ? "?" : "");
	return text;
}
