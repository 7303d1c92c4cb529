/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of traces say: values, sums, and their errors. */
#include "pprof/analysis/traces.h"

#include <string.h>

bool traces_has(const struct traces *t, enum measure_kind kind)
{
	return t->kinds[kind] >= 0;
}

enum measure_kind traces_default_kind(const struct traces *t)
{
	for (int kind = 0; kind < MEASURE_COUNT; kind++)
		if (traces_has(t, (enum measure_kind)kind))
			return (enum measure_kind)kind;
	return MEASURE_OTHER;
}

static int64_t read_values(const struct traces *t, const int64_t *values, enum measure_kind kind)
{
	int64_t difference;

	if (t->kinds[kind] < 0)
		return 0;
	if (kind != MEASURE_FREED)
		return values[t->kinds[kind]];
	if (__builtin_sub_overflow(
	        values[t->kinds[MEASURE_OBJECTS]], values[t->kinds[MEASURE_INUSE_OBJECTS]], &difference))
		return INT64_MAX;
	traces_sum(&difference, values[t->type_count + 1]);
	return difference > 0 ? difference : 0;
}

int64_t traces_value(const struct traces *t, size_t row, size_t column, enum measure_kind kind)
{
	return read_values(t, t->values + (row * t->column_count + column) * t->slot_count, kind);
}

int64_t traces_all(const struct traces *t, size_t column, enum measure_kind kind)
{
	return read_values(t, t->all + column * t->slot_count, kind);
}

static struct traces_doubt doubt_of(const struct estimate sides[SIDE_COUNT], enum measure_kind kind)
{
	const struct estimate *side =
	    &sides[kind == MEASURE_INUSE || kind == MEASURE_INUSE_OBJECTS ? SIDE_INUSE : SIDE_ALLOC];

	if (kind == MEASURE_OTHER)
		return (struct traces_doubt){0, 0};
	return (struct traces_doubt){side->samples,
	    kind == MEASURE_INUSE || kind == MEASURE_ALLOC ? side->bytes_variance : side->objects_variance};
}

/* Freed blocks are a share of the allocated ones and are assumed to have the same sizes: both samples and
 * variance are scaled by that share. */
struct traces_doubt traces_doubt(const struct traces *t, size_t row, size_t column, enum measure_kind kind)
{
	struct traces_doubt doubt =
	    doubt_of(t->estimates + (row * t->column_count + column) * SIDE_COUNT, kind);

	if (kind == MEASURE_FREED || kind == MEASURE_TEMPORARY) {
		double all = (double)traces_value(t, row, column, MEASURE_OBJECTS);
		double share = all > 0 ? (double)traces_value(t, row, column, kind) / all : 0;

		doubt.samples *= share;
		doubt.variance *= share;
	}
	return doubt;
}

struct traces_doubt traces_doubt_all(const struct traces *t, size_t column, enum measure_kind kind)
{
	return doubt_of(t->all_estimates + column * SIDE_COUNT, kind);
}

struct traces_doubt traces_doubt_selected(const struct traces *t, size_t column, enum measure_kind kind)
{
	struct traces_doubt sum = {0, 0};

	if (kind != MEASURE_FREED && kind != MEASURE_TEMPORARY)
		return doubt_of(t->selected_estimates + column * SIDE_COUNT, kind);
	for (size_t row = 0; row < t->row_count; row++) {
		struct traces_doubt doubt = traces_doubt(t, row, column, kind);

		sum.samples += doubt.samples;
		sum.variance += doubt.variance;
	}
	return sum;
}

bool traces_differ(const struct traces *t, size_t column, size_t other, enum measure_kind kind)
{
	const uint64_t *a = t->prints + column * t->slot_count, *b = t->prints + other * t->slot_count;
	int type = t->kinds[kind], rest = t->kinds[MEASURE_INUSE_OBJECTS];

	if (type < 0)
		return false;
	return a[type] != b[type] || (kind == MEASURE_FREED && a[rest] != b[rest]);
}

const char *traces_kind_word(enum measure_kind kind)
{
	static const char *const words[MEASURE_COUNT] = {
#define WORD(constant, word, type) [MEASURE_##constant] = (word),
	    MEASURES(WORD)
#undef WORD
	        [MEASURE_OTHER] = "other",
	};

	return words[kind];
}

const char *traces_unit(const struct traces *t, enum measure_kind kind)
{
	return t->kinds[kind] < 0 ? "" : t->units[t->kinds[kind]];
}

bool traces_is_bytes(const struct traces *t, enum measure_kind kind)
{
	return strcmp(traces_unit(t, kind), "bytes") == 0;
}
