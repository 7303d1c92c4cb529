/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/tables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

/* The table of mappings: finds an equal row, or appends one. */

/* ---- mappings */

void mappings_fini(struct mappings *m)
{
	index_fini(&m->index);
	free(m->rows);
	memset(m, 0, sizeof(*m));
}

static uint32_t hash_mapping(const struct mappings_row *row)
{
	uint64_t hash = index_mix(index_mix(index_seed(), row->start), row->limit);

	hash = index_mix(index_mix(hash, row->file_offset), (uint64_t)row->filename << 32 | row->build_id);
	return index_fold(hash);
}

static bool same_mapping(const struct mappings_row *a, const struct mappings_row *b)
{
	return a->start == b->start && a->limit == b->limit && a->file_offset == b->file_offset &&
	    a->filename == b->filename && a->build_id == b->build_id;
}

int mappings_add(struct mappings *m, const struct mappings_row *row, uint32_t *id)
{
	uint32_t hash = hash_mapping(row);
	size_t cursor = index_start(hash);

	while ((*id = index_next(&m->index, hash, &cursor)))
		if (same_mapping(&m->rows[*id - 1], row))
			return 0;
	if (m->count == UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&m->rows, &m->row_capacity, (size_t)m->count + 1, sizeof(*m->rows)) ||
	    index_add(&m->index, hash, m->count + 1))
		return -ENOMEM;
	m->rows[m->count] = *row;
	*id = ++m->count;
	return 0;
}

/* The table of functions: finds an equal row, or appends one. */

/* ---- functions */

void functions_fini(struct functions *f)
{
	index_fini(&f->index);
	free(f->rows);
	memset(f, 0, sizeof(*f));
}

static uint32_t hash_function(const struct functions_row *row)
{
	uint64_t hash = index_mix(index_seed(), (uint64_t)row->name << 32 | row->system_name);

	return index_fold(index_mix(index_mix(hash, row->filename), (uint64_t)row->start_line));
}

static bool same_function(const struct functions_row *a, const struct functions_row *b)
{
	return a->name == b->name && a->system_name == b->system_name && a->filename == b->filename &&
	    a->start_line == b->start_line;
}

int functions_add(struct functions *f, const struct functions_row *row, uint32_t *id)
{
	uint32_t hash = hash_function(row);
	size_t cursor = index_start(hash);

	while ((*id = index_next(&f->index, hash, &cursor)))
		if (same_function(&f->rows[*id - 1], row))
			return 0;
	if (f->count == UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&f->rows, &f->row_capacity, (size_t)f->count + 1, sizeof(*f->rows)) ||
	    index_add(&f->index, hash, f->count + 1))
		return -ENOMEM;
	f->rows[f->count] = *row;
	*id = ++f->count;
	return 0;
}

/* ---- locations */

void locations_fini(struct locations *l)
{
	index_fini(&l->index);
	free(l->rows);
	free(l->lines);
	memset(l, 0, sizeof(*l));
}

/* Field by field, here and below: struct profile_line has padding. */
static uint32_t hash_location(const struct profile_location *location)
{
	uint64_t hash = index_mix(index_seed(), (uint64_t)location->mapping << 1 | location->folded);
	size_t i;

	hash = index_mix(hash, location->address);
	for (i = 0; i < location->line_count; i++) {
		hash = index_mix(hash, location->lines[i].function);
		hash = index_mix(hash, (uint64_t)location->lines[i].line);
		hash = index_mix(hash, (uint64_t)location->lines[i].column);
	}
	return index_fold(hash);
}

static bool same_location(
    const struct locations *l, const struct locations_row *old, const struct profile_location *new)
{
	const struct profile_line *lines = l->lines + old->line;
	size_t i;

	if (old->address != new->address || old->mapping != new->mapping || old->folded != new->folded ||
	    old->line_count != new->line_count)
		return false;
	for (i = 0; i < new->line_count; i++)
		if (lines[i].function != new->lines[i].function || lines[i].line != new->lines[i].line ||
		    lines[i].column != new->lines[i].column)
			return false;
	return true;
}

static int append_location(struct locations *l, uint32_t hash, const struct profile_location *location)
{
	struct locations_row *row;

	if (l->count == UINT32_MAX || location->line_count > UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&l->rows, &l->row_capacity, (size_t)l->count + 1, sizeof(*l->rows)) ||
	    array_reserve(
	        &l->lines, &l->line_capacity, l->line_count + location->line_count, sizeof(*l->lines)) ||
	    index_add(&l->index, hash, l->count + 1))
		return -ENOMEM;
	row = &l->rows[l->count++];
	row->address = location->address;
	row->mapping = location->mapping;
	row->folded = location->folded;
	row->line = l->line_count;
	row->line_count = (uint32_t)location->line_count;
	if (location->line_count)
		memcpy(l->lines + l->line_count, location->lines, location->line_count * sizeof(*l->lines));
	l->line_count += location->line_count;
	return 0;
}

int locations_add(struct locations *l, const struct profile_location *location, uint32_t *id)
{
	uint32_t hash = hash_location(location);
	size_t cursor = index_start(hash);
	int err;

	while ((*id = index_next(&l->index, hash, &cursor)))
		if (same_location(l, &l->rows[*id - 1], location))
			return 0;
	err = append_location(l, hash, location);
	*id = err ? 0 : l->count;
	return err;
}

int locations_name(struct locations *l, uint32_t id, const struct profile_line *lines, size_t count)
{
	if (count > UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&l->lines, &l->line_capacity, l->line_count + count, sizeof(*l->lines)))
		return -ENOMEM;
	if (count)
		memcpy(l->lines + l->line_count, lines, count * sizeof(*lines));
	l->rows[id - 1].line = l->line_count;
	l->rows[id - 1].line_count = (uint32_t)count;
	l->line_count += count;
	return 0;
}

/* ---- samples */

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

static uint32_t find_sample(const struct samples *s, uint32_t hash, const uint32_t *stack, size_t depth,
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

static int reserve_for_sample(struct samples *s, size_t depth, size_t label_count)
{
	size_t rows = (size_t)s->row_count + 1;

	if (array_reserve(&s->rows, &s->row_capacity, rows, sizeof(*s->rows)) ||
	    array_reserve(&s->values, &s->value_capacity, rows * s->type_count, sizeof(*s->values)) ||
	    array_reserve(&s->stacks, &s->stack_capacity, s->stack_count + depth, sizeof(*s->stacks)) ||
	    array_reserve(&s->labels, &s->label_capacity, s->label_count + label_count, sizeof(*s->labels)))
		return -ENOMEM;
	return 0;
}

static int append_sample(struct samples *s, uint32_t hash, const uint32_t *stack, size_t depth,
    const struct samples_label *labels, size_t label_count, const int64_t *values)
{
	struct samples_row *row;

	if (s->row_count == UINT32_MAX || depth > UINT32_MAX || label_count > UINT32_MAX)
		return -EOVERFLOW;
	if (reserve_for_sample(s, depth, label_count) || index_add(&s->index, hash, s->row_count + 1))
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
	id = find_sample(s, index_fold(hash), stack, depth, labels, label_count);
	if (!id)
		return append_sample(s, index_fold(hash), stack, depth, labels, label_count, values);
	for (i = 0; i < s->type_count; i++) {
		int64_t *value = &s->values[(id - 1) * s->type_count + i];

		*value = add_saturated(*value, values[i]);
	}
	return 0;
}
