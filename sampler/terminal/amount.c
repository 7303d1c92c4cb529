/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/terminal/amount.h"

#include "pprof/profile/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *amount_doubt(double value, double samples, double variance, bool unsure, char text[AMOUNT_BYTES])
{
	double percent = value != 0 ? 100 * sqrt(variance > 0 ? variance : 0) / fabs(value) : 0;
	long count = lround(samples);

	if (unsure || value == 0)
		text[0] = '\0';
	else if (variance <= 0)
		strcpy(text, "exact");
	else if (samples < ESTIMATE_FEW_SAMPLES - 0.5)
		snprintf(text, AMOUNT_BYTES,
		    count < 1        ? "<1 sample"
		        : count == 1 ? "%ld sample"
		                     : "%ld samples",
		    count);
	else
		snprintf(text, AMOUNT_BYTES, percent < 9.95 ? "+-%.1f%%" : "+-%.0f%%", percent);
	return text;
}
