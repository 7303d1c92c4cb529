/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/callers.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define LEAST_SHARE (1.0 / 3)

/* The rows that are about the function, and whose stacks go on with the callers chosen so far. */
struct choice {
	const struct traces *traces;
	const double *values;
	uint32_t *rows;
	size_t count;
	double *sums; /* by frame; all zero between calls of choose() */
};

/* The frame so many places outwards from the row's head; false: the stack ends before. */
static bool frame_at(const struct choice *c, uint32_t row, size_t outwards, uint32_t *frame)
{
	const struct traces_row *r = &c->traces->rows[row];

	if (outwards >= r->depth - r->head)
		return false;
	*frame = traces_stack(c->traces, row)[r->head + outwards];
	return true;
}

/* Returns the caller at `depth` with the largest sum, and keeps only its rows. */
static uint32_t choose(struct choice *c, size_t depth, double *sum)
{
	uint32_t frame;
	uint32_t largest = 0;
	size_t kept = 0;

	*sum = 0;
	for (size_t i = 0; i < c->count; i++)
		if (frame_at(c, c->rows[i], depth, &frame))
			c->rows[kept++] = c->rows[i];
	c->count = kept;
	for (size_t i = 0; i < c->count; i++)
		if (frame_at(c, c->rows[i], depth, &frame))
			c->sums[frame] += c->values[c->rows[i]];
	for (size_t i = 0; i < c->count && frame_at(c, c->rows[i], depth, &frame); i++) {
		if (fabs(c->sums[frame]) > fabs(*sum)) {
			*sum = c->sums[frame];
			largest = frame;
		}
		c->sums[frame] = 0;
	}
	kept = 0;
	for (size_t i = 0; i < c->count; i++)
		if (frame_at(c, c->rows[i], depth, &frame) && frame == largest)
			c->rows[kept++] = c->rows[i];
	c->count = kept;
	return largest;
}

/* What the function mostly calls where it does not allocate itself. */
static void choose_through(const struct choice *c, double all, struct callers *callers)
{
	const struct traces *t = c->traces;
	double most = 0;

	for (size_t i = 0; i < c->count; i++)
		if (t->rows[c->rows[i]].head)
			c->sums[traces_stack(t, c->rows[i])[t->rows[c->rows[i]].through]] +=
			    c->values[c->rows[i]];
	for (size_t i = 0; i < c->count; i++) {
		uint32_t frame = traces_stack(t, c->rows[i])[t->rows[c->rows[i]].through];

		if (fabs(c->sums[frame]) > fabs(most)) {
			most = c->sums[frame];
			callers->through = frame;
		}
		c->sums[frame] = 0;
	}
	callers->through_share = most / all >= LEAST_SHARE ? most / all : 0;
}

int callers_find(struct callers *callers, const struct traces *t, const double *values, uint32_t function)
{
	struct choice c = {t, values, malloc(((size_t)t->row_count + 1) * sizeof(uint32_t)), 0,
	    calloc((size_t)t->frames.count + 1, sizeof(double))};
	double all = 0, sum;
	int err = c.rows && c.sums ? 0 : -ENOMEM;

	*callers = (struct callers){0};
	for (uint32_t row = 0; row < t->row_count && !err; row++) {
		if (!t->rows[row].depth || traces_stack(t, row)[t->rows[row].head] != function)
			continue;
		all += values[row];
		c.rows[c.count++] = row;
	}
	if (!err && all != 0)
		choose_through(&c, all, callers);
	while (callers->count < CALLERS_MOST && !err && all != 0) {
		uint32_t caller = choose(&c, callers->count + 1, &sum);

		if (!(sum / all >= LEAST_SHARE))
			break;
		callers->shares[callers->count] = sum / all;
		callers->frames[callers->count++] = caller;
	}
	free(c.rows);
	free(c.sums);
	return err;
}
