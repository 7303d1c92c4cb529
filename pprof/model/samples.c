/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

_Static_assert(sizeof(struct samples_label) == 24, "labels are compared as bytes");

void samples_fini(struct samples *s)
{
	index_fini(&s->index);
	free(s->rows);
	free(s->values);
	free(s->stacks);
	free(s->labels);
	memset(s, 0, sizeof(*s));
}

bool samples_is_zero(const struct samples *s, size_t row)
{
	const int64_t *values = s->values + row * s->type_count;
	size_t i;

	for (i = 0; i < s->type_count; i++)
		if (values[i])
			return false;
	return true;
}

static int compare_strings(uint32_t a, uint32_t b, const struct intern *strings)
{
	if (a == b)
		return 0;
	if (strings)
		return strcmp(intern_at(strings, a), intern_at(strings, b));
	return a < b ? -1 : 1;
}

static int compare_labels(const void *left, const void *right, void *strings)
{
	const struct samples_label *a = left, *b = right;
	int order = compare_strings(a->key, b->key, strings);

	if (!order)
		order = compare_strings(a->str, b->str, strings);
	if (!order)
		order = compare_strings(a->unit, b->unit, strings);
	if (!order && a->num != b->num)
		order = a->num < b->num ? -1 : 1;
	return order;
}

void samples_sort_labels(struct samples_label *labels, size_t label_count, const struct intern *strings)
{
	if (label_count > 1)
		qsort_r(labels, label_count, sizeof(*labels), compare_labels, (void *)strings);
}

/* A total at the limit is visibly wrong; one that wraps around becomes negative and breaks readers. */
static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

static uint32_t find(const struct samples *s, uint32_t hash, const uint32_t *stack, size_t depth,
    const struct samples_label *labels, size_t label_count)
{
	size_t cursor = index_start(hash);
	uint32_t id;

	while ((id = index_next(&s->index, hash, &cursor))) {
		const struct samples_row *row = &s->rows[id - 1];

		if (row->depth == depth && row->label_count == label_count &&
		    (!depth || !memcmp(s->stacks + row->stack, stack, depth * sizeof(*stack))) &&
		    (!label_count || !memcmp(s->labels + row->label, labels, label_count * sizeof(*labels))))
			break;
	}
	return id;
}

static int reserve(struct samples *s, size_t depth, size_t label_count)
{
	size_t rows = (size_t)s->row_count + 1;

	if (array_reserve(&s->rows, &s->row_capacity, rows, sizeof(*s->rows)) ||
	    array_reserve(&s->values, &s->value_capacity, rows * s->type_count, sizeof(*s->values)) ||
	    array_reserve(&s->stacks, &s->stack_capacity, s->stack_count + depth, sizeof(*s->stacks)) ||
	    array_reserve(&s->labels, &s->label_capacity, s->label_count + label_count, sizeof(*s->labels)))
		return -ENOMEM;
	return 0;
}

static int append(struct samples *s, uint32_t hash, const uint32_t *stack, size_t depth,
    const struct samples_label *labels, size_t label_count, const int64_t *values)
{
	struct samples_row *row;

	if (s->row_count == UINT32_MAX || depth > UINT32_MAX || label_count > UINT32_MAX)
		return -EOVERFLOW;
	if (reserve(s, depth, label_count) || index_add(&s->index, hash, s->row_count + 1))
		return -ENOMEM;
	row = &s->rows[s->row_count];
	row->stack = s->stack_count;
	row->depth = (uint32_t)depth;
	row->label = s->label_count;
	row->label_count = (uint32_t)label_count;
	if (depth)
		memcpy(s->stacks + s->stack_count, stack, depth * sizeof(*stack));
	if (label_count)
		memcpy(s->labels + s->label_count, labels, label_count * sizeof(*labels));
	if (s->type_count)
		memcpy(s->values + s->row_count * s->type_count, values, s->type_count * sizeof(*values));
	s->stack_count += depth;
	s->label_count += label_count;
	s->row_count++;
	return 0;
}

int samples_add(struct samples *s, const uint32_t *stack, size_t depth, const struct samples_label *labels,
    size_t label_count, const int64_t *values)
{
	uint64_t hash = index_seed();
	uint32_t id;
	size_t i;

	hash = index_mix_bytes(hash, stack, depth * sizeof(*stack));
	hash = index_mix_bytes(hash, labels, label_count * sizeof(*labels));
	id = find(s, index_fold(hash), stack, depth, labels, label_count);
	if (!id)
		return append(s, index_fold(hash), stack, depth, labels, label_count, values);
	for (i = 0; i < s->type_count; i++) {
		int64_t *value = &s->values[(id - 1) * s->type_count + i];

		*value = add_saturated(*value, values[i]);
	}
	return 0;
}
