/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that several profiles of the traces have: the estimates are corrected for them. */
#include "pprof/analysis/traces.h"

#include "pprof/analysis/code_names.h"
#include "pprof/analysis/filter.h"
#include "pprof/analysis/thread_names.h"

int traces_expect(struct traces *t, const struct profile *profile, size_t column)
{
	int err = shared_samples_expect(&t->overlap, profile, column);

	if (!err &&
	    (t->options.by == GROUP_THREAD || t->options.split ||
	        (t->options.filter && t->options.filter->thread)))
		err = thread_names_learn(&t->thread_names, profile);
	return err ? err : code_names_learn(&t->code_names, profile);
}

static void correct_all(
    void *context, size_t column, uint32_t row, enum shared_samples_side side, struct estimate excess)
{
	const struct traces *t = context;

	(void)row;
	estimate_add(&t->all_estimates[column * SIDE_COUNT + side], excess);
}

static void correct_selected(
    void *context, size_t column, uint32_t row, enum shared_samples_side side, struct estimate excess)
{
	const struct traces *t = context;

	(void)row;
	estimate_add(&t->selected_estimates[column * SIDE_COUNT + side], excess);
}

static void correct_row(
    void *context, size_t column, uint32_t row, enum shared_samples_side side, struct estimate excess)
{
	const struct traces *t = context;

	t->rows[row].is_shared = true;
	estimate_add(&t->estimates[((size_t)row * t->column_count + column) * SIDE_COUNT + side], excess);
}

int traces_finish(struct traces *t)
{
	int err = shared_samples_find(&t->overlap, OVERLAP_ALL, correct_all, t);

	if (!err)
		err = shared_samples_find(&t->overlap, OVERLAP_SELECTED, correct_selected, t);
	return err ? err : shared_samples_find(&t->overlap, OVERLAP_ROWS, correct_row, t);
}
