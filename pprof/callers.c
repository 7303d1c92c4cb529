/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/callers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LEAST_SHARE (1.0 / 3)

/* Does the stack begin with the leaf and the callers that are known so far? */
static bool fits(const struct traces *t, size_t row, uint32_t leaf, const struct callers *callers)
{
	const uint32_t *stack = traces_stack(t, row);

	if (t->rows[row].depth < callers->count + 2 || stack[0] != leaf)
		return false;
	for (size_t i = 0; i < callers->count; i++)
		if (stack[i + 1] != callers->frames[i])
			return false;
	return true;
}

/* The next caller outwards with the largest sum; sums has a zero per frame, before and after. */
static uint32_t largest_find(const struct traces *t, const double *values, uint32_t leaf, const struct callers *callers,
    double *sums, double *sum)
{
	size_t at = callers->count + 1;
	uint32_t largest = 0;

	*sum = 0;
	for (size_t row = 0; row < t->row_count; row++) {
		uint32_t frame;

		if (!fits(t, row, leaf, callers))
			continue;
		frame = traces_stack(t, row)[at];
		sums[frame] += values[row];
	}
	for (size_t row = 0; row < t->row_count; row++) {
		uint32_t frame;

		if (!fits(t, row, leaf, callers))
			continue;
		frame = traces_stack(t, row)[at];
		if (fabs(sums[frame]) > fabs(*sum)) {
			*sum = sums[frame];
			largest = frame;
		}
		sums[frame] = 0;
	}
	return largest;
}

int callers_find(struct callers *callers, const struct traces *t, const double *values, uint32_t leaf)
{
	double *sums = calloc((size_t)t->frame_count + 1, sizeof(*sums)), all = 0, sum;

	*callers = (struct callers){0};
	if (!sums)
		return -ENOMEM;
	for (size_t row = 0; row < t->row_count; row++)
		if (t->rows[row].depth && traces_stack(t, row)[0] == leaf)
			all += values[row];
	while (callers->count < CALLERS_MOST) {
		uint32_t caller = largest_find(t, values, leaf, callers, sums, &sum);

		if (all == 0 || !(sum / all >= LEAST_SHARE))
			break;
		callers->shares[callers->count] = sum / all;
		callers->frames[callers->count++] = caller;
	}
	free(sums);
	return 0;
}
