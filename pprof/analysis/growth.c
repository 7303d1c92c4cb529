/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/growth.h"

#include "pprof/analysis/frames.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S    1e9
/* A rise that has ended is worth a word if it is at least this part of what is in use. */
#define SHARE_LEAST 0.02

/* Some rows of the traces, all with one frame, and where they are in `rows`. */
struct group {
	uint32_t frame;
	size_t first, count;
};

struct work {
	const struct traces *t;
	/* of the points */
	int64_t times_ns[TREND_POINTS_MOST];
	size_t columns[TREND_POINTS_MOST];
	size_t point_count;
	bool knows_allocated;
	uint32_t *rows; /* of the traces, grouped */
	struct group *groups;
	size_t group_count;
	bool *taken; /* by row of the traces: it is part of a row that was found */
	double bar;
	struct growth *growth;
};

/* Takes as many points of a long series as the test does, evenly, with the first and the last. */
static void choose_points(
    struct work *work, size_t first_column, const int64_t *times_ns, size_t column_count)
{
	const size_t count = column_count < TREND_POINTS_MOST ? column_count : TREND_POINTS_MOST;

	work->point_count = count;
	for (size_t i = 0; i < count; i++) {
		const size_t chosen = count > 1 ? i * (column_count - 1) / (count - 1) : i;

		work->columns[i] = first_column + chosen;
		work->times_ns[i] = times_ns[chosen];
	}
}

/* ---- points */

static void add(const struct work *work, struct trend_point *point, int64_t inuse_bytes,
    struct traces_doubt inuse, int64_t allocated_bytes, struct traces_doubt allocated)
{
	point->inuse_bytes += (double)inuse_bytes;
	point->inuse_variance += inuse.variance;
	point->inuse_samples += inuse.samples;
	point->allocated_bytes += work->knows_allocated ? (double)allocated_bytes : NAN;
	point->allocated_variance += allocated.variance;
	point->allocated_samples += work->knows_allocated ? allocated.samples : NAN;
}

static void begin(const struct work *work, struct trend_point *points)
{
	for (size_t i = 0; i < work->point_count; i++)
		points[i] = (struct trend_point){
		    .time_s = ((double)work->times_ns[i] - (double)work->times_ns[0]) / NS_PER_S};
}

static void points_of_group(const struct work *work, const struct group *group, struct trend_point *points)
{
	static const struct traces_doubt none;
	const struct traces *t = work->t;

	begin(work, points);
	for (size_t g = group->first; g < group->first + group->count; g++) {
		const uint32_t row = work->rows[g];

		for (size_t i = 0; i < work->point_count; i++) {
			const size_t column = work->columns[i];

			add(work, &points[i], traces_value(t, row, column, MEASURE_INUSE),
			    traces_doubt(t, row, column, MEASURE_INUSE),
			    work->knows_allocated ? traces_value(t, row, column, MEASURE_ALLOC) : 0,
			    work->knows_allocated ? traces_doubt(t, row, column, MEASURE_ALLOC) : none);
		}
	}
}

/* The total of all rows. Its error is not the sum of their errors (shared_samples.h). */
static void points_of_all(const struct work *work, struct trend_point *points)
{
	static const struct traces_doubt none;
	const struct traces *t = work->t;

	begin(work, points);
	for (size_t i = 0; i < work->point_count; i++) {
		const size_t column = work->columns[i];
		int64_t inuse = 0, allocated = 0;

		for (size_t row = 0; row < t->row_count; row++) {
			traces_sum(&inuse, traces_value(t, row, column, MEASURE_INUSE));
			if (work->knows_allocated)
				traces_sum(&allocated, traces_value(t, row, column, MEASURE_ALLOC));
		}
		add(work, &points[i], inuse, traces_doubt_selected(t, column, MEASURE_INUSE), allocated,
		    work->knows_allocated ? traces_doubt_selected(t, column, MEASURE_ALLOC) : none);
	}
}

/* ---- what is found */

static struct growth_row row_of(const struct work *work, const struct trend_point *points, struct trend trend)
{
	const struct trend_point *last = &points[work->point_count - 1];

	return (struct growth_row){.trend = trend,
	    .since_column = work->columns[trend.since],
	    .until_column = work->columns[trend.until],
	    .since_ns = work->times_ns[trend.since],
	    .until_ns = work->times_ns[trend.until],
	    .inuse_bytes = last->inuse_bytes,
	    .samples = last->inuse_samples,
	    .rise_bytes = last->inuse_bytes - points[0].inuse_bytes};
}

static bool is_worth_a_word(const struct work *work, const struct trend *trend)
{
	return trend->kind == TREND_GROWS ||
	    (trend->kind == TREND_ROSE && trend->bytes >= SHARE_LEAST * work->growth->total.inuse_bytes);
}

static void judge(struct work *work, const struct group *group, bool is_caller)
{
	struct trend_point points[TREND_POINTS_MOST];
	struct trend trend;

	points_of_group(work, group, points);
	trend = trend_find(points, work->point_count, work->bar);
	if (!is_worth_a_word(work, &trend))
		return;
	struct growth_row *found = &work->growth->rows[work->growth->count++];

	*found = row_of(work, points, trend);
	found->frame = group->frame;
	found->is_caller = is_caller;
	for (size_t g = group->first; g < group->first + group->count; g++)
		work->taken[work->rows[g]] = true;
}

/* ---- groups: the rows of each head */

static uint32_t head_of(const struct traces *t, uint32_t row)
{
	return t->rows[row].depth ? traces_stack(t, row)[t->rows[row].head] : UINT32_MAX;
}

static int compare_heads(const void *left, const void *right, void *context)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const uint32_t x = head_of(context, a), y = head_of(context, b);

	return x != y ? (x < y ? -1 : 1) : a < b ? -1 : a > b;
}

static void group_by_head(struct work *work)
{
	const struct traces *t = work->t;
	size_t count = 0;

	for (uint32_t row = 0; row < t->row_count; row++)
		if (t->rows[row].depth)
			work->rows[count++] = row;
	if (count > 1)
		qsort_r(work->rows, count, sizeof(*work->rows), compare_heads, (void *)t);
	work->group_count = 0;
	for (size_t i = 0; i < count; i++) {
		const uint32_t frame = head_of(t, work->rows[i]);

		if (!i || work->groups[work->group_count - 1].frame != frame)
			work->groups[work->group_count++] = (struct group){frame, i, 0};
		work->groups[work->group_count - 1].count++;
	}
}

/* Twice as many sums as heads: a tree has fewer callers at which it branches than it has ends. */
static double bar_of(const struct work *work)
{
	struct trend_point points[TREND_POINTS_MOST];
	double askable = 1, rows;

	do {
		rows = askable;
		askable = 0;
		for (size_t i = 0; i < work->group_count; i++) {
			points_of_group(work, &work->groups[i], points);
			askable += trend_is_askable(
			    points, work->point_count, trend_bar(2 * rows, work->point_count));
		}
	} while (askable > rows);
	return trend_bar(2 * rows, work->point_count);
}

/* ---- callers of what was not found */

struct caller {
	uint32_t frame;
	bool is_named;
	double rise_bytes, inuse_bytes; /* from the first point to the last; at the last */
};

static double at_end(const struct work *work, uint32_t row, size_t point)
{
	return (double)traces_value(work->t, row, work->columns[point], MEASURE_INUSE);
}

static bool is_named(int role)
{
	return role != FRAME_UNNAMED && role != FRAME_UNNAMED_OWN;
}

/* Adds up the rises of the rows that were not found, by each function on their stacks outside of the head. */
static void sum_callers(const struct work *work, struct caller *callers, uint32_t *seen)
{
	const struct traces *t = work->t;

	for (uint32_t f = 0; f < t->frames.count; f++)
		callers[f] = (struct caller){.frame = f, .is_named = is_named(t->frames.rows[f].role)};
	for (uint32_t row = 0; row < t->row_count; row++) {
		const double last = at_end(work, row, work->point_count - 1),
		             rise = last - at_end(work, row, 0);

		for (uint32_t i = t->rows[row].head + 1; !work->taken[row] && i < t->rows[row].depth; i++) {
			const uint32_t frame = traces_stack(t, row)[i];

			if (seen[frame] == row + 1 || *t->frames.rows[frame].name == '[')
				continue; /* what stands in brackets is no function */
			seen[frame] = row + 1;
			callers[frame].rise_bytes += rise;
			callers[frame].inuse_bytes += last;
		}
	}
}

/* The innermost function comes first: a function that calls another holds more than that leak. But a function
 * without a name, an address, tells the user nothing, and stands for one call in a function of several. */
static int compare_callers(const void *left, const void *right)
{
	const struct caller *a = left, *b = right;

	if (a->is_named != b->is_named)
		return a->is_named ? -1 : 1;
	if (a->inuse_bytes != b->inuse_bytes)
		return a->inuse_bytes < b->inuse_bytes ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static bool has_frame(const struct traces *t, uint32_t row, uint32_t frame)
{
	for (uint32_t i = t->rows[row].head + 1; i < t->rows[row].depth; i++)
		if (traces_stack(t, row)[i] == frame)
			return true;
	return false;
}

static void judge_callers(struct work *work, struct caller *callers, size_t count)
{
	const struct traces *t = work->t;

	for (size_t c = 0; c < count; c++) {
		struct group group = {callers[c].frame, 0, 0};

		for (uint32_t row = 0; row < t->row_count; row++)
			if (!work->taken[row] && has_frame(t, row, group.frame))
				work->rows[group.count++] = row;
		if (group.count > 1)
			judge(work, &group, true);
	}
}

/* 0 or -ENOMEM. */
static int find_callers(struct work *work)
{
	const uint32_t frames = work->t->frames.count;
	struct caller *callers = calloc((size_t)frames + 1, sizeof(*callers));
	uint32_t *seen = calloc((size_t)frames + 1, sizeof(*seen));
	size_t count = 0;

	if (callers && seen) {
		sum_callers(work, callers, seen);
		for (uint32_t f = 0; f < frames; f++)
			if (callers[f].rise_bytes >= SHARE_LEAST * work->growth->total.inuse_bytes &&
			    callers[f].rise_bytes > 0)
				callers[count++] = callers[f];
		if (count > 1)
			qsort(callers, count, sizeof(*callers), compare_callers);
		judge_callers(work, callers, count);
	}
	free(callers);
	free(seen);
	return callers && seen ? 0 : -ENOMEM;
}

/* ---- the whole */

static int compare_rows(const void *left, const void *right)
{
	const struct growth_row *a = left, *b = right;

	if (a->trend.kind != b->trend.kind)
		return a->trend.kind == TREND_GROWS ? -1 : 1;
	if (a->trend.bytes != b->trend.bytes)
		return a->trend.bytes > b->trend.bytes ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

/* 0 or -ENOMEM. */
static int find(struct work *work)
{
	struct growth *growth = work->growth;
	struct trend_point points[TREND_POINTS_MOST];
	int err;

	points_of_all(work, points);
	growth->total =
	    row_of(work, points, trend_find(points, work->point_count, trend_bar(1, work->point_count)));
	group_by_head(work);
	work->bar = bar_of(work);
	for (size_t i = 0; i < work->group_count; i++)
		judge(work, &work->groups[i], false);
	err = find_callers(work);
	if (growth->count > 1)
		qsort(growth->rows, growth->count, sizeof(*growth->rows), compare_rows);
	while (growth->growing_count < growth->count &&
	    growth->rows[growth->growing_count].trend.kind == TREND_GROWS)
		growth->growing_count++;
	return err;
}

int growth_make(struct growth *growth, const struct traces *t, size_t first_column, const int64_t *times_ns,
    size_t column_count)
{
	struct work work = {.t = t, .knows_allocated = traces_has(t, MEASURE_ALLOC), .growth = growth};
	int err = -ENOMEM;

	memset(growth, 0, sizeof(*growth));
	if (!traces_has(t, MEASURE_INUSE) || t->unsure)
		return -ENODATA;
	choose_points(&work, first_column, times_ns, column_count);
	growth->point_count = work.point_count;
	if (work.point_count < TREND_POINTS_LEAST)
		return 0;
	/* Each row found takes one row of the traces at least. */
	growth->rows = calloc((size_t)t->row_count + 1, sizeof(*growth->rows));
	work.rows = calloc((size_t)t->row_count + 1, sizeof(*work.rows));
	work.groups = calloc((size_t)t->row_count + 1, sizeof(*work.groups));
	work.taken = calloc((size_t)t->row_count + 1, sizeof(*work.taken));
	if (growth->rows && work.rows && work.groups && work.taken)
		err = find(&work);
	free(work.rows);
	free(work.groups);
	free(work.taken);
	return err;
}

void growth_fini(struct growth *growth)
{
	free(growth->rows);
	memset(growth, 0, sizeof(*growth));
}
