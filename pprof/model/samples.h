/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a profile: one row per distinct (stack, labels), with a value for each sample type.
 *
 * Rows point into shared arrays:
 *
 *	rows    | stack 0, depth 3 | stack 3, depth 2 | ...
 *	stacks  | 7 4 1            | 9 1              | ...	location ids, leaf first
 *	values  | 4 numbers        | 4 numbers        | ...
 */
#ifndef PPROF_MODEL_SAMPLES_H
#define PPROF_MODEL_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/table/index.h"
#include "pprof/table/intern.h"

/* key, str and unit are string numbers; str 0 makes it a number. No implicit padding: compared as bytes. */
struct samples_label {
	int64_t num;
	uint32_t key, str, unit, zero;
};

struct samples_row {
	size_t stack, label; /* first entry in the arrays below */
	uint32_t depth, label_count;
};

struct samples {
	size_t type_count; /* fixed before the first row */
	struct index index;
	struct samples_row *rows;
	size_t row_capacity;
	uint32_t row_count;
	int64_t *values;
	size_t value_capacity;
	uint32_t *stacks;
	size_t stack_capacity, stack_count;
	struct samples_label *labels;
	size_t label_capacity, label_count;
};

/* All zero is empty. */
void samples_fini(struct samples *s);

/* Memory that they take. */
static inline size_t samples_bytes(const struct samples *s)
{
	return index_bytes(&s->index) + s->row_capacity * sizeof(*s->rows) +
	    s->value_capacity * sizeof(*s->values) + s->stack_capacity * sizeof(*s->stacks) +
	    s->label_capacity * sizeof(*s->labels);
}

/*
 * Sorts labels into the order in which sets of labels are compared: by text, so that it does not depend on
 * how strings are numbered; without strings, by number.
 */
void samples_sort_labels(struct samples_label *labels, size_t label_count, const struct intern *strings);

/* Adds to the row with this stack and these labels (sorted). 0, -ENOMEM or -EOVERFLOW. */
int samples_add(struct samples *s, const uint32_t *stack, size_t depth, const struct samples_label *labels,
    size_t label_count, const int64_t *values);

/* Are all values of the row 0? Such a row is not written. */
bool samples_is_zero(const struct samples *s, size_t row);

#endif
