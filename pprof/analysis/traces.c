/* SPDX-License-Identifier: Apache-2.0 */
/* Traces before and after profiles are added: sample types, memory, samples that several profiles have, and
 * what the rows say. */
#include "pprof/analysis/traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/filter.h"
#include "pprof/analysis/late_names.h"
#include "pprof/analysis/shared_samples.h"
#include "pprof/model/profile.h"

/* ---- sample types */

static int type_find(const struct traces *t, enum sample_type type)
{
	for (size_t i = 0; i < t->type_count && type != SAMPLE_TYPE_NONE; i++)
		if (sample_type_is(type, t->types[i]))
			return (int)i;
	return -1;
}

static void kinds_find(struct traces *t)
{
	static const enum sample_type types[MEASURE_OTHER] = {
#define TYPE(constant, word, type) [MEASURE_##constant] = SAMPLE_TYPE_##type,
	    MEASURES(TYPE)
#undef TYPE
	};
	bool heap = false;

	for (size_t i = 0; i < MEASURE_OTHER; i++) {
		t->kinds[i] = type_find(t, types[i]);
		heap = heap || t->kinds[i] >= 0;
	}
	if (t->kinds[MEASURE_INUSE_OBJECTS] < 0)
		t->kinds[MEASURE_FREED] = -1;
	t->kinds[MEASURE_OTHER] = heap ? -1 : (int)t->default_type;
}

static const char *intern(struct traces *t, const char *text)
{
	uint32_t number;

	return intern_add(&t->strings, text, strlen(text), &number) ? NULL : intern_at(&t->strings, number);
}

int traces_init(
    struct traces *t, const struct traces_options *options, const struct profile *first, size_t column_count)
{
	size_t count = profile_sample_type_count(first);

	memset(t, 0, sizeof(*t));
	t->options = *options;
	t->frames.lines = options->lines;
	t->frames.anonymize = options->anonymize;
	t->frames.names = options->by == GROUP_FUNCTION ? options->names : FRAMES_FULL;
	t->frames.filter = options->filter;
	t->column_count = column_count;
	t->types = calloc(count + 1, sizeof(*t->types));
	t->units = calloc(count + 1, sizeof(*t->units));
	t->slot_count = count + 2;
	t->all = calloc(t->slot_count * column_count + 1, sizeof(*t->all));
	t->all_estimates = calloc(column_count * SIDE_COUNT + 1, sizeof(*t->all_estimates));
	t->selected_estimates = calloc(column_count * SIDE_COUNT + 1, sizeof(*t->selected_estimates));
	t->prints = calloc(t->slot_count * column_count + 1, sizeof(*t->prints));
	t->overlap = calloc(1, sizeof(*t->overlap));
	if (!t->types || !t->units || !t->all || !t->all_estimates || !t->selected_estimates || !t->prints ||
	    !t->overlap)
		return -ENOMEM;
	t->default_type = count ? count - 1 : 0;
	for (size_t i = 0; i < count; i++) {
		struct profile_value_type type = profile_sample_type(first, i);

		t->types[i] = intern(t, type.type);
		t->units[i] = intern(t, type.unit);
		if (!t->types[i] || !t->units[i])
			return -ENOMEM;
		t->type_count = i + 1;
		if (strcmp(type.type, profile_default_sample_type(first)) == 0)
			t->default_type = i;
	}
	kinds_find(t);
	return 0;
}

void traces_fini(struct traces *t)
{
	intern_fini(&t->strings);
	frames_fini(&t->frames);
	index_fini(&t->row_index);
	free(t->rows);
	free(t->stacks);
	free(t->types);
	free(t->units);
	free(t->values);
	free(t->estimates);
	free(t->all);
	free(t->all_estimates);
	free(t->selected_estimates);
	free(t->prints);
	if (t->overlap)
		shared_samples_fini(t->overlap);
	free(t->overlap);
	late_names_fini(&t->thread_names);
	late_names_fini(&t->code_names);
	free(t->path);
	memset(t, 0, sizeof(*t));
}

int traces_check_memory(const struct traces *t, size_t more)
{
	size_t bytes = intern_bytes(&t->strings) + frames_bytes(&t->frames) + index_bytes(&t->row_index) +
	    t->row_capacity * sizeof(*t->rows) + t->stack_capacity * sizeof(*t->stacks) +
	    t->value_capacity * sizeof(*t->values) + t->estimate_capacity * sizeof(*t->estimates) +
	    t->path_capacity * sizeof(*t->path) + (t->overlap ? shared_samples_bytes(t->overlap) : 0) +
	    late_names_bytes(&t->thread_names) + late_names_bytes(&t->code_names) +
	    t->column_count * t->slot_count * (sizeof(*t->all) + sizeof(*t->prints));

	return t->options.max_bytes && bytes + more > t->options.max_bytes ? -EFBIG : 0;
}

/* ---- samples that several profiles have */

int traces_expect(struct traces *t, const struct profile *profile, size_t column)
{
	int err = shared_samples_expect(t->overlap, profile, column);

	if (!err &&
	    (t->options.by == GROUP_THREAD || t->options.split ||
	        (t->options.filter && t->options.filter->thread)))
		err = late_names_learn_threads(&t->thread_names, profile);
	return err ? err : late_names_learn_code(&t->code_names, profile);
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
	int err = shared_samples_find(t->overlap, OVERLAP_ALL, correct_all, t);

	if (!err)
		err = shared_samples_find(t->overlap, OVERLAP_SELECTED, correct_selected, t);
	if (!err)
		err = shared_samples_find(t->overlap, OVERLAP_ROWS, correct_row, t);
	t->is_bound = t->overlap->is_bound;
	return err;
}

/* ---- what the rows say: values, sums, and their errors */

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
