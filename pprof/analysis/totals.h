/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals of each frame, of one column and one kind: flat (the frame is its row's head: the leaf, which called
 * the allocator, or what row_label.h chose instead) and cum (with everything it called). A frame counts once
 * per stack, however often it recurs there.
 */
#ifndef PPROF_ANALYSIS_TOTALS_H
#define PPROF_ANALYSIS_TOTALS_H

#include "pprof/analysis/traces.h"

struct totals_sum {
	int64_t value;
	double samples, variance;
};

struct totals_row {
	uint32_t frame;
	struct totals_sum flat, cum;
};

struct totals {
	struct totals_row *rows; /* after totals_make() by frame number, all frames */
	size_t count;
	struct totals_sum sum; /* flat of all rows, plus stacks without frames */
};

enum totals_order { TOTALS_BY_FLAT, TOTALS_BY_CUM };

/* 0, -ENOMEM, or -EFBIG beyond the traces' max_bytes. */
int totals_make(struct totals *totals, const struct traces *t, size_t column, enum measure_kind kind);
void totals_fini(struct totals *totals);

/* Largest magnitude first, then by name; rows that are all zero are removed. */
void totals_sort(struct totals *totals, const struct traces *t, enum totals_order order);

void totals_sum_add(struct totals_sum *sum, int64_t value, struct traces_doubt doubt);

/*
 * Did the frame occur in this row before (recursion)? seen has an entry per frame, 0 at first: the last row,
 * plus 1, that had the frame. So nothing has to be cleared between rows.
 */
static inline bool totals_seen(uint32_t *seen, uint32_t frame, size_t row)
{
	if (seen[frame] == (uint32_t)row + 1)
		return true;
	seen[frame] = (uint32_t)row + 1;
	return false;
}

#endif
