/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of a profile: mappings, functions, locations and samples. Adding a row finds an equal row, or
 * appends one. All zero is an empty table. Strings are numbers in the string table of the profile.
 */
#ifndef PPROF_MODEL_TABLES_H
#define PPROF_MODEL_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/model/profile_location.h"
#include "pprof/table/index.h"
#include "pprof/table/intern.h"

/* ---- mappings: each distinct (addresses, file offset, file name, build id) once. A mapping that is added
 * again keeps its first flags. */

struct mappings_row {
	uint64_t start, limit, file_offset;
	uint32_t filename, build_id;
	unsigned int flags; /* enum profile_mapping_flags */
};

struct mappings {
	struct index index;
	struct mappings_row *rows; /* of ids 1..count */
	size_t row_capacity;
	uint32_t count;
};

void mappings_fini(struct mappings *m);

/* Memory that they take, here and below. */
static inline size_t mappings_bytes(const struct mappings *m)
{
	return index_bytes(&m->index) + m->row_capacity * sizeof(*m->rows);
}

/* 0 with the id, the old one for a mapping already there, in *id; or -ENOMEM, -EOVERFLOW. */
int mappings_add(struct mappings *m, const struct mappings_row *row, uint32_t *id);

/* ---- functions: each distinct (names, file, first line) once */

struct functions_row {
	uint32_t name, system_name, filename;
	int64_t start_line;
};

struct functions {
	struct index index;
	struct functions_row *rows; /* of ids 1..count */
	size_t row_capacity;
	uint32_t count;
};

void functions_fini(struct functions *f);

static inline size_t functions_bytes(const struct functions *f)
{
	return index_bytes(&f->index) + f->row_capacity * sizeof(*f->rows);
}

/* 0 with the id, the old one for a function already there, in *id; or -ENOMEM, -EOVERFLOW. */
int functions_add(struct functions *f, const struct functions_row *row, uint32_t *id);

/* ---- locations: each distinct (mapping, address, lines) once, with the lines of all in one array */

struct locations_row {
	uint64_t address;
	size_t line; /* first one in lines */
	uint32_t mapping, line_count;
	bool folded;
};

struct locations {
	struct index index;
	struct locations_row *rows; /* of ids 1..count */
	size_t row_capacity;
	uint32_t count;
	struct profile_line *lines;
	size_t line_capacity, line_count;
};

void locations_fini(struct locations *l);

static inline size_t locations_bytes(const struct locations *l)
{
	return index_bytes(&l->index) + l->row_capacity * sizeof(*l->rows) +
	    l->line_capacity * sizeof(*l->lines);
}

/* Gives a location other lines. The index does not find it by these lines, so no location may be added
 * after that. 0, -ENOMEM or -EOVERFLOW. */
int locations_name(struct locations *l, uint32_t id, const struct profile_line *lines, size_t count);

/* 0 with the id, the old one for a location already there, in *id; or -ENOMEM, -EOVERFLOW. */
int locations_add(struct locations *l, const struct profile_location *location, uint32_t *id);

/*
 * ---- samples: one row per distinct (stack, labels), with a value for each sample type
 *
 * Rows point into shared arrays:
 *
 *	rows    | stack 0, depth 3 | stack 3, depth 2 | ...
 *	stacks  | 7 4 1            | 9 1              | ...	location ids, leaf first
 *	values  | 4 numbers        | 4 numbers        | ...
 */

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

void samples_fini(struct samples *s);

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
