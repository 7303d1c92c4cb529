/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/growth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/contrast.h"

/* In standard errors; one-sided, a chance of about 1 in 40 for each half. */
#define HALF_THRESHOLD 2.0

static bool rises(
    const struct traces *t, size_t row, size_t from, size_t to, double threshold, struct growth_row *found)
{
	double change, variance = contrast_variance(t, row, from, to, MEASURE_INUSE);

	found->first = (double)traces_value(t, row, from, MEASURE_INUSE);
	found->last = (double)traces_value(t, row, to, MEASURE_INUSE);
	found->variance = variance;
	change = found->last - found->first;
	return change > 0 && change > threshold * sqrt(variance);
}

static int compare_rows(const void *left, const void *right)
{
	const struct growth_row *a = left, *b = right;
	double x = a->last - a->first, y = b->last - b->first;

	if (x != y)
		return x > y ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

int growth_make(struct growth *growth, const struct traces *t, size_t column_count)
{
	size_t last = column_count - 1, middle = last / 2;

	memset(growth, 0, sizeof(*growth));
	if (column_count < GROWTH_LEAST_COLUMNS || !traces_has(t, MEASURE_INUSE) || t->unsure)
		return 0;
	growth->rows = calloc((size_t)t->row_count + 1, sizeof(*growth->rows));
	if (!growth->rows)
		return -ENOMEM;
	growth->threshold = estimate_threshold((double)t->row_count);
	for (size_t row = 0; row < t->row_count; row++) {
		struct growth_row found = {.row = (uint32_t)row}, half;

		if (!rises(t, row, 0, middle, HALF_THRESHOLD, &half) ||
		    !rises(t, row, middle, last, HALF_THRESHOLD, &half) ||
		    !rises(t, row, 0, last, growth->threshold, &found))
			continue;
		found.samples = traces_doubt(t, row, last, MEASURE_INUSE).samples;
		growth->rows[growth->count++] = found;
	}
	if (growth->count > 1)
		qsort(growth->rows, growth->count, sizeof(*growth->rows), compare_rows);
	return 0;
}

void growth_fini(struct growth *growth)
{
	free(growth->rows);
	memset(growth, 0, sizeof(*growth));
}
