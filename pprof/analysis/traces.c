/* SPDX-License-Identifier: Apache-2.0 */
/* Traces before and after profiles are added: sample types, memory, samples that several profiles have. */
#include "pprof/analysis/traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/filter.h"
#include "pprof/analysis/late_names.h"
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
	if (!t->types || !t->units || !t->all || !t->all_estimates || !t->selected_estimates || !t->prints)
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
	shared_samples_fini(&t->overlap);
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
	    t->path_capacity * sizeof(*t->path) + shared_samples_bytes(&t->overlap) +
	    late_names_bytes(&t->thread_names) + late_names_bytes(&t->code_names) +
	    t->column_count * t->slot_count * (sizeof(*t->all) + sizeof(*t->prints));

	return t->options.max_bytes && bytes + more > t->options.max_bytes ? -EFBIG : 0;
}

/* ---- samples that several profiles have */

int traces_expect(struct traces *t, const struct profile *profile, size_t column)
{
	int err = shared_samples_expect(&t->overlap, profile, column);

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
	int err = shared_samples_find(&t->overlap, OVERLAP_ALL, correct_all, t);

	if (!err)
		err = shared_samples_find(&t->overlap, OVERLAP_SELECTED, correct_selected, t);
	return err ? err : shared_samples_find(&t->overlap, OVERLAP_ROWS, correct_row, t);
}
