/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/contrast.h"

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

double contrast_variance(
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

static void add(struct contrast_sum *sum, double before, double after, double variance, double samples)
{
	sum->before += before;
	sum->after += after;
	sum->variance += variance;
	sum->samples += samples;
}

static void add_row(struct contrast *contrast, const struct traces *t, const struct contrast_options *options,
    size_t row, double scale, uint32_t *seen)
{
	double before = (double)traces_value(t, row, options->before, options->kind);
	double after = (double)traces_value(t, row, options->after, options->kind) * scale;
	struct traces_doubt old = traces_doubt(t, row, options->before, options->kind);
	struct traces_doubt new = traces_doubt(t, row, options->after, options->kind);
	double variance = options->same_process && !options->normalize
	    ? contrast_variance(t, row, options->before, options->after, options->kind)
	    : old.variance + new.variance *scale *scale;
	const uint32_t *stack = traces_stack(t, row);

	add(&contrast->sum, before, after, variance, old.samples + new.samples);
	for (uint32_t i = 0; i < t->rows[row].depth; i++) {
		if (i == t->rows[row].head)
			add(&contrast->rows[stack[i]].flat, before, after, variance,
			    old.samples + new.samples);
		if (!totals_seen(seen, stack[i], row))
			add(&contrast->rows[stack[i]].cum, before, after, variance,
			    old.samples + new.samples);
	}
}

/* The variance of the sum of all rows: the rows may have blocks in common (overlap.h). */
static void doubt_sum(
    struct contrast_sum *sum, const struct traces *t, const struct contrast_options *options, double scale)
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

static double scale_of(const struct traces *t, const struct contrast_options *options)
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
	const struct contrast_row *a = left, *b = right;
	const struct sorting *sorting = context;
	double x = sorting->cum ? a->cum.after - a->cum.before : a->flat.after - a->flat.before;
	double y = sorting->cum ? b->cum.after - b->cum.before : b->flat.after - b->flat.before;

	if (fabs(x) != fabs(y))
		return fabs(x) > fabs(y) ? -1 : 1;
	return strcmp(
	    sorting->traces->frames.rows[a->frame].name, sorting->traces->frames.rows[b->frame].name);
}

/* A smaller difference is the rounding of a scaled value. */
static bool has_change(const struct contrast_sum *sum)
{
	return fabs(sum->after - sum->before) > 1e-9 * (fabs(sum->after) + fabs(sum->before));
}

int contrast_make(struct contrast *contrast, const struct traces *t, const struct contrast_options *options)
{
	uint32_t *seen = calloc((size_t)t->frames.count + 1, sizeof(*seen));
	struct sorting sorting = {t, options->order == TOTALS_BY_CUM};
	double scale = scale_of(t, options);
	size_t kept = 0;

	memset(contrast, 0, sizeof(*contrast));
	contrast->rows = calloc((size_t)t->frames.count + 1, sizeof(*contrast->rows));
	if (!seen || !contrast->rows) {
		free(seen);
		contrast_fini(contrast);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->frames.count; i++)
		contrast->rows[i].frame = i;
	for (size_t row = 0; row < t->row_count; row++)
		add_row(contrast, t, options, row, scale, seen);
	free(seen);
	doubt_sum(&contrast->sum, t, options, scale);
	for (uint32_t i = 0; i < t->frames.count; i++)
		if (has_change(sorting.cum ? &contrast->rows[i].cum : &contrast->rows[i].flat))
			contrast->rows[kept++] = contrast->rows[i];
	contrast->count = kept;
	contrast->scale = scale;
	contrast->threshold = estimate_threshold((double)kept);
	if (kept > 1)
		qsort_r(contrast->rows, kept, sizeof(*contrast->rows), compare_rows, &sorting);
	return 0;
}

void contrast_fini(struct contrast *contrast)
{
	free(contrast->rows);
	memset(contrast, 0, sizeof(*contrast));
}
