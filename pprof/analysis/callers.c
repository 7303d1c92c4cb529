/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/callers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LEAST_SHARE (1.0 / 3)

/* The rows whose stacks begin with the leaf and the callers chosen so far. */
struct choice {
	const struct traces *traces;
	const double *values;
	uint32_t *rows;
	size_t count;
	double *sums; /* by frame; all zero between calls of choose() */
};

/* Returns the caller at `depth` with the largest sum, and keeps only its rows. */
static uint32_t choose(struct choice *c, size_t depth, double *sum)
{
	uint32_t largest = 0;
	size_t kept = 0;

	*sum = 0;
	for (size_t i = 0; i < c->count; i++)
		if (c->traces->rows[c->rows[i]].depth > depth)
			c->rows[kept++] = c->rows[i];
	c->count = kept;
	for (size_t i = 0; i < c->count; i++)
		c->sums[traces_stack(c->traces, c->rows[i])[depth]] += c->values[c->rows[i]];
	for (size_t i = 0; i < c->count; i++) {
		uint32_t frame = traces_stack(c->traces, c->rows[i])[depth];

		if (fabs(c->sums[frame]) > fabs(*sum)) {
			*sum = c->sums[frame];
			largest = frame;
		}
		c->sums[frame] = 0;
	}
	kept = 0;
	for (size_t i = 0; i < c->count; i++)
		if (traces_stack(c->traces, c->rows[i])[depth] == largest)
			c->rows[kept++] = c->rows[i];
	c->count = kept;
	return largest;
}

int callers_find(struct callers *callers, const struct traces *t, const double *values, uint32_t leaf)
{
	struct choice c = {t, values, malloc(((size_t)t->row_count + 1) * sizeof(uint32_t)), 0,
	    calloc((size_t)t->frames.count + 1, sizeof(double))};
	double all = 0, sum;
	int err = c.rows && c.sums ? 0 : -ENOMEM;

	*callers = (struct callers){0};
	for (uint32_t row = 0; row < t->row_count && !err; row++) {
		if (!t->rows[row].depth || traces_stack(t, row)[0] != leaf)
			continue;
		all += values[row];
		c.rows[c.count++] = row;
	}
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
