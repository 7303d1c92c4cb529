/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what every report and export works on. The stacks of one or more profiles as they are shown to
 * people: frames of the allocator cut off, inlined functions as frames of their own, functions told apart by
 * name (or by name and line) instead of by address, samples that differ only in labels added up.
 *
 *	frames   | main | load | parse |			interned, numbered from 0
 *	rows     | stack of frames, leaf first | ...		one per distinct stack
 *	cells    row x column: values by sample type, and how sure they are
 *
 * A column is one profile (or several added up): a report has one, a diff two, a series of snapshots many.
 * The sample types are the first profile's; those of later ones are found by name.
 */
#ifndef PPROF_ANALYSIS_TRACES_H
#define PPROF_ANALYSIS_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/analysis/frames.h"
#include "pprof/profile/estimate.h"
#include "pprof/table/index.h"
#include "pprof/table/intern.h"

struct filter;
struct profile;

struct traces_row {
	size_t stack; /* first one in stacks */
	uint32_t depth;
};

/* What a table can be about. */
enum measure_kind {
	MEASURE_INUSE, /* bytes */
	MEASURE_INUSE_OBJECTS,
	MEASURE_ALLOC,     /* bytes, since the recording began */
	MEASURE_OBJECTS,   /* allocations since the recording began */
	MEASURE_TEMPORARY, /* of these, how many were freed again */
	MEASURE_OTHER,     /* the default sample type of a profile that is not of a heap */
	MEASURE_COUNT
};

enum traces_side { SIDE_ALLOC, SIDE_INUSE, SIDE_COUNT };

struct traces_options {
	bool lines;                  /* tell frames apart by source line too */
	bool anonymize;              /* names become hashes that are the same in every run */
	const struct filter *filter; /* NULL: none */
	size_t max_bytes;            /* of memory, and of what is made from them; 0: any */
};

struct traces {
	struct traces_options options;
	struct intern strings; /* of the sample types */
	struct frames frames;
	struct index row_index;
	struct traces_row *rows;
	uint32_t row_count;
	size_t row_capacity;
	uint32_t *stacks;
	size_t stack_capacity, stack_count;
	size_t type_count, column_count, default_type;
	const char **types, **units;
	/* type of each kind, -1 for none; of MEASURE_TEMPORARY see traces_value() */
	int kinds[MEASURE_COUNT];
	int64_t *values;            /* [(row * column_count + column) * type_count + type] */
	struct estimate *estimates; /* [(row * column_count + column) * SIDE_COUNT + side] */
	size_t value_capacity, estimate_capacity;
	int64_t *all;   /* [column * type_count + type]: totals before filtering */
	bool unsure;    /* some profile has no period: estimates say nothing */
	uint32_t *path; /* the stack at hand */
	size_t path_capacity;
};

/* The types are taken from first. 0 or -ENOMEM; the caller ends it with traces_fini() either way. */
int traces_init(
    struct traces *t, const struct traces_options *options, const struct profile *first, size_t column_count);
void traces_fini(struct traces *t);

/* Adds a profile to a column; the profile may go then. 0, -ENOMEM, -EOVERFLOW; -EFBIG beyond max_bytes;
 * -ENODATA: no sample type in common. */
int traces_add(struct traces *t, const struct profile *profile, size_t column);

/* 0, or -EFBIG if `more` bytes beside what they take are more than may be. */
int traces_check_memory(const struct traces *t, size_t more);

/* Can the profiles answer this at all? */
bool traces_has(const struct traces *t, enum measure_kind kind);

/* The most interesting kind that the profiles have. */
enum measure_kind traces_default_kind(const struct traces *t);

int64_t traces_value(const struct traces *t, size_t row, size_t column, enum measure_kind kind);

/* Before filtering, of the whole column. */
int64_t traces_all(const struct traces *t, size_t column, enum measure_kind kind);

/* Samples and variance of a value; variance is of bytes or objects as the kind is. */
struct traces_doubt {
	double samples, variance;
};
struct traces_doubt traces_doubt(const struct traces *t, size_t row, size_t column, enum measure_kind kind);

/* "inuse", the word for --sort; whether the kind counts bytes; its unit. */
const char *traces_kind_word(enum measure_kind kind);
bool traces_is_bytes(const struct traces *t, enum measure_kind kind);
const char *traces_unit(const struct traces *t, enum measure_kind kind);

/* Saturates: a sum that wraps becomes negative. */
static inline void traces_sum(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = value < 0 ? INT64_MIN : INT64_MAX;
}

static inline const uint32_t *traces_stack(const struct traces *t, size_t row)
{
	return t->stacks + t->rows[row].stack;
}

#endif
