/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/leaks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_leaks(const void *left, const void *right)
{
	const struct leak *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

int leaks_find(struct leaks *leaks, const struct traces *t, size_t column, struct suppressions *suppressions)
{
	memset(leaks, 0, sizeof(*leaks));
	leaks->leaks = calloc((size_t)t->row_count + 1, sizeof(*leaks->leaks));
	if (!leaks->leaks)
		return -ENOMEM;
	for (size_t row = 0; row < t->row_count; row++) {
		struct leak leak = {(uint32_t)row, traces_value(t, row, column, MEASURE_INUSE),
		    traces_value(t, row, column, MEASURE_INUSE_OBJECTS)};

		if (leak.bytes <= 0)
			continue;
		if (suppressions && suppressions_match(suppressions, t, row)) {
			leaks->suppressed++;
			traces_sum(&leaks->suppressed_bytes, leak.bytes);
			continue;
		}
		traces_sum(&leaks->bytes, leak.bytes);
		traces_sum(&leaks->objects, leak.objects);
		leaks->variance += traces_doubt(t, row, column, MEASURE_INUSE).variance;
		leaks->leaks[leaks->count++] = leak;
	}
	if (leaks->count > 1)
		qsort(leaks->leaks, leaks->count, sizeof(*leaks->leaks), compare_leaks);
	return 0;
}

void leaks_fini(struct leaks *leaks)
{
	free(leaks->leaks);
	memset(leaks, 0, sizeof(*leaks));
}
