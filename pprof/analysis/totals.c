/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void totals_sum_add(struct totals_sum *sum, int64_t value, struct traces_doubt doubt)
{
	traces_sum(&sum->value, value);
	sum->samples += doubt.samples;
	sum->variance += doubt.variance;
}

int totals_make(struct totals *totals, const struct traces *t, size_t column, enum measure_kind kind)
{
	/* At worst the caller has totals of every kind at once, and two to sort by. */
	size_t all_bytes = ((size_t)t->frames.count + 1) * sizeof(*totals->rows) * (MEASURE_COUNT + 2);
	struct traces_doubt doubt;
	uint32_t *seen;

	memset(totals, 0, sizeof(*totals));
	if (traces_check_memory(t, all_bytes))
		return -EFBIG;
	seen = calloc((size_t)t->frames.count + 1, sizeof(*seen));
	totals->rows = calloc((size_t)t->frames.count + 1, sizeof(*totals->rows));
	totals->count = t->frames.count;
	if (!totals->rows || !seen) {
		free(seen);
		totals_fini(totals);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->frames.count; i++)
		totals->rows[i].frame = i;
	for (size_t row = 0; row < t->row_count; row++) {
		int64_t value = traces_value(t, row, column, kind);
		const uint32_t *stack = traces_stack(t, row);

		if (!value)
			continue;
		doubt = traces_doubt(t, row, column, kind);
		totals_sum_add(&totals->sum, value, doubt);
		for (uint32_t i = 0; i < t->rows[row].depth; i++) {
			if (i == t->rows[row].head)
				totals_sum_add(&totals->rows[stack[i]].flat, value, doubt);
			if (!totals_seen(seen, stack[i], row))
				totals_sum_add(&totals->rows[stack[i]].cum, value, doubt);
		}
	}
	free(seen);
	doubt = traces_doubt_selected(t, column, kind);
	totals->sum.samples = doubt.samples;
	totals->sum.variance = doubt.variance;
	return 0;
}

void totals_fini(struct totals *totals)
{
	free(totals->rows);
	memset(totals, 0, sizeof(*totals));
}

struct sorting {
	const struct traces *traces;
	enum totals_order order;
};

static int compare_magnitudes(int64_t a, int64_t b)
{
	uint64_t left = a < 0 ? -(uint64_t)a : (uint64_t)a, right = b < 0 ? -(uint64_t)b : (uint64_t)b;

	return left > right ? -1 : left < right;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct totals_row *a = left, *b = right;
	const struct sorting *sorting = context;
	bool flat = sorting->order == TOTALS_BY_FLAT;
	int order = flat ? compare_magnitudes(a->flat.value, b->flat.value)
	                 : compare_magnitudes(a->cum.value, b->cum.value);

	if (!order)
		order = flat ? compare_magnitudes(a->cum.value, b->cum.value)
		             : compare_magnitudes(a->flat.value, b->flat.value);
	if (!order)
		order = strcmp(
		    sorting->traces->frames.rows[a->frame].name, sorting->traces->frames.rows[b->frame].name);
	if (!order && a->frame != b->frame)
		order = a->frame < b->frame ? -1 : 1;
	return order;
}

void totals_sort(struct totals *totals, const struct traces *t, enum totals_order order)
{
	struct sorting sorting = {t, order};
	size_t kept = 0;

	for (size_t i = 0; i < totals->count; i++)
		if (totals->rows[i].flat.value || totals->rows[i].cum.value)
			totals->rows[kept++] = totals->rows[i];
	totals->count = kept;
	if (kept > 1)
		qsort_r(totals->rows, kept, sizeof(*totals->rows), compare_rows, &sorting);
}
