/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/since.h"

#include "pprof/analysis/stack_key.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/model/sample_types.h"
#include "pprof/table/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool since_is_total(const struct origin *origin, const char *type)
{
	if (origin->kind != ORIGIN_LIVE)
		return false;
	return *origin->event || sample_type_is_total(type);
}

/* A column of totals, in both profiles. */
struct column {
	size_t first, last;
};

/* Samples of the earlier profile that have one key. What is left of all of them stands at one of them. */
struct row {
	uint64_t key;
	size_t sample;
};

struct work {
	const struct profile *first, *last;
	struct column *columns;
	size_t column_count;
	struct row *rows; /* ascending by key */
	size_t row_count;
	int64_t *left;   /* of the earlier profile, not yet taken away: its samples by columns */
	int64_t *values; /* of the later one: samples by sample types */
	size_t types;
	bool *known; /* does the earlier profile have the stack of this sample? */
};

static int columns_find(struct work *w, const struct origin *origin)
{
	w->columns = calloc(w->types + 1, sizeof(*w->columns));
	if (!w->columns)
		return -ENOMEM;
	for (size_t last = 0; last < w->types; last++) {
		const char *type = profile_sample_type(w->last, last).type;
		size_t first = 0;

		while (first < profile_sample_type_count(w->first) &&
		    strcmp(profile_sample_type(w->first, first).type, type) != 0)
			first++;
		if (since_is_total(origin, type) && first < profile_sample_type_count(w->first))
			w->columns[w->column_count++] = (struct column){first, last};
	}
	return 0;
}

static int rows_make(struct work *w)
{
	const size_t samples = profile_sample_count(w->first);

	w->rows = calloc(samples + 1, sizeof(*w->rows));
	w->left = calloc(samples * w->column_count + 1, sizeof(*w->left));
	w->known = calloc(profile_sample_count(w->last) + 1, sizeof(*w->known));
	if (!w->rows || !w->left || !w->known)
		return -ENOMEM;
	for (size_t i = 0; i < samples; i++) {
		int64_t any = 0;

		for (size_t c = 0; c < w->column_count; c++)
			any |= w->left[i * w->column_count + c] =
			    profile_sample(w->first, i).values[w->columns[c].first];
		if (any)
			w->rows[w->row_count++].sample = i;
	}
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	uint64_t x = ((const struct row *)a)->key, y = ((const struct row *)b)->key;

	return x < y ? -1 : x > y;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static void rows_fold(struct work *w)
{
	size_t kept = 0;

	if (w->row_count)
		qsort(w->rows, w->row_count, sizeof(*w->rows), compare_rows);
	for (size_t i = 0; i < w->row_count; i++) {
		const struct row row = w->rows[i];

		if (!kept || w->rows[kept - 1].key != row.key) {
			w->rows[kept++] = row;
			continue;
		}
		for (size_t c = 0; c < w->column_count; c++) {
			int64_t *to = &w->left[w->rows[kept - 1].sample * w->column_count + c];
			int64_t *from = &w->left[row.sample * w->column_count + c];

			*to = add_saturating(*to, *from);
			*from = 0;
		}
	}
	w->row_count = kept;
}

/* Moves from *left what *value has of it. */
static void take(int64_t *value, int64_t *left)
{
	int64_t taken = *left < *value ? *left : *value;

	if (taken <= 0)
		return;
	*left -= taken;
	*value -= taken;
}

/* Samples of both profiles that have the same key: with their labels, or of the stack alone. */
static int subtract(struct work *w, uint64_t (*key_of)(const struct stack_keys *keys, size_t sample))
{
	struct stack_keys keys;

	if (stack_keys_init(&keys, w->first))
		return -ENOMEM;
	for (size_t i = 0; i < w->row_count; i++)
		w->rows[i].key = key_of(&keys, w->rows[i].sample);
	stack_keys_fini(&keys);
	rows_fold(w);
	if (stack_keys_init(&keys, w->last))
		return -ENOMEM;
	for (size_t i = 0; i < profile_sample_count(w->last); i++) {
		const uint64_t key = key_of(&keys, i);
		const size_t at = ARRAY_LOWER_BOUND(w->rows, w->row_count, key, key);

		if (at == w->row_count || w->rows[at].key != key)
			continue;
		w->known[i] = true;
		for (size_t c = 0; c < w->column_count; c++)
			take(&w->values[i * w->types + w->columns[c].last],
			    &w->left[w->rows[at].sample * w->column_count + c]);
	}
	stack_keys_fini(&keys);
	return 0;
}

/* Is its first frame one of ours that stands for others, `[lost stack]`? */
static bool is_nameless(const struct profile *profile, size_t index)
{
	struct profile_sample sample = profile_sample(profile, index);
	uint32_t mapping = sample.depth ? profile_location(profile, sample.locations[0]).mapping : 0;

	return mapping && strcmp(profile_mapping(profile, mapping).filename, "[heaptap]") == 0;
}

static void take_fallen(struct work *w, size_t column, int64_t fallen)
{
	enum { NAMELESS, NEW, ANY, KINDS };

	for (int kind = NAMELESS; kind < KINDS; kind++)
		for (size_t i = 0; i < profile_sample_count(w->last) && fallen > 0; i++)
			if (kind == ANY || (kind == NEW && !w->known[i]) ||
			    (kind == NAMELESS && is_nameless(w->last, i)))
				take(&w->values[i * w->types + w->columns[column].last], &fallen);
}

/* Returns the sum of all that has fallen. */
static int64_t settle_fallen(struct work *w)
{
	int64_t sum = 0;

	for (size_t c = 0; c < w->column_count; c++) {
		int64_t fallen = 0;

		for (size_t i = 0; i < profile_sample_count(w->first); i++)
			if (w->left[i * w->column_count + c] > 0)
				fallen = add_saturating(fallen, w->left[i * w->column_count + c]);
		take_fallen(w, c, fallen);
		sum = add_saturating(sum, fallen);
	}
	return sum;
}

static int64_t *values_of(const struct profile *profile)
{
	const size_t types = profile_sample_type_count(profile), samples = profile_sample_count(profile);
	int64_t *values = calloc(samples * types + 1, sizeof(*values));

	for (size_t i = 0; values && i < samples; i++)
		memcpy(values + i * types, profile_sample(profile, i).values, types * sizeof(*values));
	return values;
}

static void forget_totals(const struct profile *last, const struct origin *origin, int64_t *values)
{
	const size_t types = profile_sample_type_count(last);

	for (size_t t = 0; t < types; t++)
		for (size_t i = 0; since_is_total(origin, profile_sample_type(last, t).type) &&
		     i < profile_sample_count(last);
		     i++)
			values[i * types + t] = 0;
}

int64_t *since_values(
    const struct since *since, const struct profile *last, const struct origin *origin, int64_t *fallen)
{
	struct work w = {.first = since->first,
	    .last = last,
	    .types = profile_sample_type_count(last),
	    .values = values_of(last)};
	int err = w.values ? 0 : -ENOMEM;

	*fallen = 0;
	if (!err && since->unknown)
		forget_totals(last, origin, w.values);
	else if (!err && since->first)
		err = columns_find(&w, origin);
	if (!err && w.column_count) {
		err = rows_make(&w);
		err = err ? err : subtract(&w, stack_key_lasting);
		err = err ? err : subtract(&w, stack_key_without_labels);
		*fallen = err ? 0 : settle_fallen(&w);
	}
	free(w.columns);
	free(w.rows);
	free(w.left);
	free(w.known);
	if (!err)
		return w.values;
	free(w.values);
	return NULL;
}

/* ---- what is kept of a profile */

struct keeping {
	const struct profile *from;
	struct profile *to;
	size_t *columns, column_count; /* of totals */
	int64_t *values;
	uint32_t *locations; /* in `to`, by id; 0: not there yet */
	uint32_t *stack;
	size_t stack_room;
	struct profile_label *labels;
	size_t label_room;
	struct profile_line *lines;
	size_t line_room;
};

static int keep_lines(struct keeping *k, struct profile_location *location)
{
	if (array_reserve(&k->lines, &k->line_room, location->line_count, sizeof(*k->lines)))
		return -ENOMEM;
	for (size_t i = 0; i < location->line_count; i++) {
		struct profile_function function = profile_function(k->from, location->lines[i].function);

		k->lines[i] = location->lines[i];
		k->lines[i].function = profile_add_function(k->to, &function);
	}
	location->lines = k->lines;
	return 0;
}

static int keep_location(struct keeping *k, uint32_t id)
{
	struct profile_location location = profile_location(k->from, id);
	int err = 0;

	if (location.mapping) {
		struct profile_mapping mapping = profile_mapping(k->from, location.mapping);

		location.mapping = profile_add_mapping(k->to, &mapping);
	}
	if (stack_key_is_named(k->from, id))
		err = keep_lines(k, &location);
	else
		location.line_count = 0;
	if (!err)
		k->locations[id] = profile_add_location(k->to, &location);
	return err ? err : profile_error(k->to);
}

static int keep_sample(struct keeping *k, size_t index)
{
	struct profile_sample sample = profile_sample(k->from, index);
	size_t label_count = 0;
	int64_t any = 0;

	for (size_t c = 0; c < k->column_count; c++)
		any |= k->values[c] = sample.values[k->columns[c]];
	if (!any)
		return 0;
	if (array_reserve(&k->stack, &k->stack_room, sample.depth + 1, sizeof(*k->stack)) ||
	    array_reserve(&k->labels, &k->label_room, sample.label_count + 1, sizeof(*k->labels)))
		return -ENOMEM;
	for (size_t i = 0; i < sample.depth; i++) {
		int err = k->locations[sample.locations[i]] ? 0 : keep_location(k, sample.locations[i]);

		if (err)
			return err;
		k->stack[i] = k->locations[sample.locations[i]];
	}
	for (size_t i = 0; i < sample.label_count; i++) {
		k->labels[label_count] = profile_sample_label(k->from, index, i);
		label_count += stack_key_lasts(&k->labels[label_count]);
	}
	return profile_add_sample(k->to, k->stack, sample.depth, k->values, k->labels, label_count);
}

static int keep_all(struct keeping *k, const struct origin *origin)
{
	const size_t types = profile_sample_type_count(k->from);
	int err;

	k->columns = calloc(types + 1, sizeof(*k->columns));
	k->values = calloc(types + 1, sizeof(*k->values));
	k->locations = calloc((size_t)profile_location_count(k->from) + 1, sizeof(*k->locations));
	if (!k->columns || !k->values || !k->locations)
		return -ENOMEM;
	for (size_t t = 0; t < types; t++) {
		struct profile_value_type type = profile_sample_type(k->from, t);

		if (!since_is_total(origin, type.type))
			continue;
		k->columns[k->column_count++] = t;
		profile_add_sample_type(k->to, type.type, type.unit);
	}
	profile_set_time(k->to, profile_time_ns(k->from), 0);
	err = profile_error(k->to);
	for (size_t i = 0; k->column_count && i < profile_sample_count(k->from) && !err; i++)
		err = keep_sample(k, i);
	return err;
}

int since_keep(const struct profile *profile, const struct origin *origin, struct profile **kept)
{
	struct keeping k = {.from = profile, .to = profile_new()};
	int err = k.to ? keep_all(&k, origin) : -ENOMEM;

	free(k.columns);
	free(k.values);
	free(k.locations);
	free(k.stack);
	free(k.labels);
	free(k.lines);
	if (err)
		profile_free(k.to);
	else
		*kept = k.to;
	return err;
}
