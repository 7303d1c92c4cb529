/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/terminal/amount.h"

#include "pprof/profile/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *amount_doubt(double value, double samples, double variance, bool unsure, char text[AMOUNT_BYTES])
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
