/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/column_diff.h"

#include "pprof/model/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Variance of the blocks of a stack that add up to value. It is linear in value: all blocks of a stack are
 * assumed to have one size. */
static double part(const struct traces *t, size_t row, size_t column, enum measure_kind kind, double value)
{
	double whole = (double)traces_value(t, row, column, kind);

	return whole > 0 ? traces_doubt(t, row, column, kind).variance * value / whole : 0;
}

double column_diff_variance(
    const struct traces *t, size_t row, size_t before, size_t after, enum measure_kind kind)
{
	enum measure_kind allocated = kind == MEASURE_INUSE ? MEASURE_ALLOC : MEASURE_OBJECTS;
	double sum = traces_doubt(t, row, before, kind).variance + traces_doubt(t, row, after, kind).variance;
	double change =
	    (double)traces_value(t, row, after, kind) - (double)traces_value(t, row, before, kind);
	double came, went, bound;

	if (kind == MEASURE_ALLOC || kind == MEASURE_OBJECTS || kind == MEASURE_FREED ||
	    kind == MEASURE_TEMPORARY)
		return change > 0 ? fmin(part(t, row, after, kind, change), sum) : sum;
	if (!traces_has(t, allocated) || kind == MEASURE_OTHER || t->rows[row].is_shared)
		return sum;
	came =
	    (double)traces_value(t, row, after, allocated) - (double)traces_value(t, row, before, allocated);
	went = came - change;
	if (came < 0 || went < 0 || came + went <= 0)
		return sum;
	bound = part(t, row, after, allocated, came + went);
	return bound > 0 ? fmin(bound, sum) : sum;
}

static void add(struct column_diff_sum *sum, double before, double after, double variance, double samples)
{
	sum->before += before;
	sum->after += after;
	sum->variance += variance;
	sum->samples += samples;
}

static void add_row(struct column_diff *compared, const struct traces *t,
    const struct column_diff_options *options, size_t row, double scale, uint32_t *seen)
{
	double before = (double)traces_value(t, row, options->before, options->kind);
	double after = (double)traces_value(t, row, options->after, options->kind) * scale;
	struct traces_doubt old = traces_doubt(t, row, options->before, options->kind);
	struct traces_doubt new = traces_doubt(t, row, options->after, options->kind);
	double variance = options->same_process && !options->normalize
	    ? column_diff_variance(t, row, options->before, options->after, options->kind)
	    : old.variance + new.variance *scale *scale;
	const uint32_t *stack = traces_stack(t, row);

	add(&compared->sum, before, after, variance, old.samples + new.samples);
	for (uint32_t i = 0; i < t->rows[row].depth; i++) {
		if (i == t->rows[row].head)
			add(&compared->rows[stack[i]].flat, before, after, variance,
			    old.samples + new.samples);
		if (!totals_seen(seen, stack[i], row))
			add(&compared->rows[stack[i]].cum, before, after, variance,
			    old.samples + new.samples);
	}
}

/* The variance of the sum of all rows: the rows may have blocks in common (shared_samples.h). */
static void doubt_sum(struct column_diff_sum *sum, const struct traces *t,
    const struct column_diff_options *options, double scale)
{
	struct traces_doubt old = traces_doubt_selected(t, options->before, options->kind);
	struct traces_doubt new = traces_doubt_selected(t, options->after, options->kind);
	bool is_shared = false;

	for (size_t row = 0; row < t->row_count; row++)
		is_shared = is_shared || t->rows[row].is_shared;
	sum->samples = old.samples + new.samples;
	if (!options->same_process || options->normalize || is_shared)
		sum->variance = old.variance + new.variance *scale *scale;
}

static double scale_of(const struct traces *t, const struct column_diff_options *options)
{
	double before = 0, after = 0;

	for (size_t row = 0; row < t->row_count; row++) {
		before += (double)traces_value(t, row, options->before, options->kind);
		after += (double)traces_value(t, row, options->after, options->kind);
	}
	return options->normalize && before > 0 && after > 0 ? before / after : 1;
}

struct sorting {
	const struct traces *traces;
	bool cum;
};

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct column_diff_row *a = left, *b = right;
	const struct sorting *sorting = context;
	double x = sorting->cum ? a->cum.after - a->cum.before : a->flat.after - a->flat.before;
	double y = sorting->cum ? b->cum.after - b->cum.before : b->flat.after - b->flat.before;

	if (fabs(x) != fabs(y))
		return fabs(x) > fabs(y) ? -1 : 1;
	return strcmp(
	    sorting->traces->frames.rows[a->frame].name, sorting->traces->frames.rows[b->frame].name);
}

/* A smaller difference is the rounding of a scaled value. */
static bool has_change(const struct column_diff_sum *sum)
{
	return fabs(sum->after - sum->before) > 1e-9 * (fabs(sum->after) + fabs(sum->before));
}

int column_diff_make(
    struct column_diff *compared, const struct traces *t, const struct column_diff_options *options)
{
	uint32_t *seen = calloc((size_t)t->frames.count + 1, sizeof(*seen));
	struct sorting sorting = {t, options->order == TOTALS_BY_CUM};
	double scale = scale_of(t, options);
	size_t kept = 0;

	memset(compared, 0, sizeof(*compared));
	compared->rows = calloc((size_t)t->frames.count + 1, sizeof(*compared->rows));
	if (!seen || !compared->rows) {
		free(seen);
		column_diff_fini(compared);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->frames.count; i++)
		compared->rows[i].frame = i;
	for (size_t row = 0; row < t->row_count; row++)
		add_row(compared, t, options, row, scale, seen);
	free(seen);
	doubt_sum(&compared->sum, t, options, scale);
	for (uint32_t i = 0; i < t->frames.count; i++)
		if (has_change(sorting.cum ? &compared->rows[i].cum : &compared->rows[i].flat))
			compared->rows[kept++] = compared->rows[i];
	compared->count = kept;
	compared->scale = scale;
	compared->threshold = estimate_threshold((double)kept);
	if (kept > 1)
		qsort_r(compared->rows, kept, sizeof(*compared->rows), compare_rows, &sorting);
	return 0;
}

void column_diff_fini(struct column_diff *compared)
{
	free(compared->rows);
	memset(compared, 0, sizeof(*compared));
}
