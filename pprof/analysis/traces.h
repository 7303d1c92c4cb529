/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what every report and export works on. The stacks of one or more profiles as they are shown: frames
 * of the allocator removed, inlined functions as frames of their own, functions distinguished by name (or by
 * name and line) instead of by address. Samples of one stack are added up, whatever their labels are. On
 * request (traces_options.split), samples of different threads or ages stay apart.
 *
 *	frames   | main | load | parse |			interned, numbered from 0
 *	rows     | stack of frames, leaf first | ...		one per distinct stack
 *	cells    row x column: values and estimates of their error, by sample type
 *
 * A column is one profile (or several added up): a report has one, a diff two, a series of snapshots many.
 * The sample types are the first profile's; later profiles' types are matched by name.
 */
#ifndef PPROF_ANALYSIS_TRACES_H
#define PPROF_ANALYSIS_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/analysis/frames.h"
#include "pprof/analysis/grouping.h"
#include "pprof/analysis/late_names.h"
#include "pprof/model/sample_types.h"
#include "pprof/table/index.h"
#include "pprof/table/intern.h"

struct estimate;
struct filter;
struct profile;
struct shared_samples;

struct traces_row {
	size_t stack; /* index of its first frame in `stacks` */
	uint32_t depth;
	/* Positions in the stack. head: the frame that the table's row is about (row_label.h). through: the
	 * frame that it called. Both are 0, the leaf, at first. */
	uint32_t head, through;
	uint32_t thread, age; /* numbers in `strings`; 0: unknown, or rows are not split */
	bool is_shared;       /* two profiles of a column hold the same samples of it (shared_samples.h) */
};

struct traces_options {
	bool lines;     /* distinguish frames by source line too */
	bool anonymize; /* names become hashes that are the same in every run */
	enum frames_names names;
	enum grouping by;            /* what rows are about */
	bool fold;                   /* a frame that follows itself counts once */
	bool split;                  /* rows of one stack apart by the thread and age of their blocks */
	const struct filter *filter; /* NULL: none */
	size_t max_bytes;            /* of memory, with what is computed from the traces; 0: no limit */
};

struct traces {
	struct traces_options options;
	struct intern strings; /* of the sample types, threads and ages */
	struct frames frames;
	struct index row_index;
	struct traces_row *rows;
	uint32_t row_count;
	size_t row_capacity;
	uint32_t *stacks;
	size_t stack_capacity, stack_count;
	size_t type_count, column_count, default_type;
	/* How many values a cell has: one for each sample type, then the temporary objects, then the objects
	 * in use that were inherited by fork. */
	size_t slot_count;
	const char **types, **units;
	/* type of each kind, -1 for none; for MEASURE_FREED see traces_value() */
	int kinds[MEASURE_COUNT];
	int64_t *values; /* [(row * column_count + column) * slot_count + type] */
	struct estimate
	    *estimates; /* [(row * column_count + column) * SIDE_COUNT + side], shared_samples.h */
	size_t value_capacity, estimate_capacity;
	int64_t *all; /* [column * slot_count + type]: totals before filtering */
	/* [column * SIDE_COUNT + side]: errors of `all`, and of the selected rows. The second is not the sum
	 * over rows: a block that several profiles hold may be in several rows. */
	struct estimate *all_estimates, *selected_estimates;
	uint64_t *prints;               /* of the selected stacks, see traces_differ() */
	struct shared_samples *overlap; /* owned */
	bool is_bound;                  /* errors are upper limits: shared_samples.h says when */
	struct late_names thread_names, code_names;
	bool unsure;    /* some profile has no period: estimates are not valid */
	uint32_t *path; /* buffer for the current stack */
	size_t path_capacity;
};

/* first: the profile whose sample types are used. 0 or -ENOMEM; call traces_fini() in both cases. */
int traces_init(
    struct traces *t, const struct traces_options *options, const struct profile *first, size_t column_count);
void traces_fini(struct traces *t);

/* Announces a profile. Call it for every profile before the first traces_add(). It learns which profiles
 * share samples, and the names of threads and of functions that were made at run time. Not needed for a
 * single profile. Returns 0 or -ENOMEM. */
int traces_expect(struct traces *t, const struct profile *profile, size_t column);

/* Corrects the estimates for samples that several profiles share. Call it when all profiles have been added.
 * Returns 0 or -ENOMEM. */
int traces_finish(struct traces *t);

/* Adds a profile to a column; the profile may be freed afterwards. 0, -ENOMEM, -EOVERFLOW; -EFBIG beyond
 * max_bytes; -ENODATA: no sample type in common. */
int traces_add(struct traces *t, const struct profile *profile, size_t column);

/* The same for a process that has ended since. Its blocks in use no longer count; its allocations do. */
int traces_add_ended(struct traces *t, const struct profile *profile, size_t column);

/* 0, or -EFBIG if the memory of the traces and `more` bytes exceed max_bytes. */
int traces_check_memory(const struct traces *t, size_t more);

/* Do the profiles have this kind? */
bool traces_has(const struct traces *t, enum measure_kind kind);

/* The first kind, in the order of the enum, that the profiles have. */
enum measure_kind traces_default_kind(const struct traces *t);

int64_t traces_value(const struct traces *t, size_t row, size_t column, enum measure_kind kind);

/* Sum of the whole column, before filtering. */
int64_t traces_all(const struct traces *t, size_t column, enum measure_kind kind);

/* Number of samples behind a value, and its variance (bytes or objects, squared, as the kind). */
struct traces_doubt {
	double samples, variance;
};
struct traces_doubt traces_doubt(const struct traces *t, size_t row, size_t column, enum measure_kind kind);

/* The same for traces_all(), and for the sum over the selected rows. For MEASURE_FREED and MEASURE_TEMPORARY
 * traces_doubt_all() is not valid, and traces_doubt_selected() adds up traces_doubt() of all rows. */
struct traces_doubt traces_doubt_all(const struct traces *t, size_t column, enum measure_kind kind);
struct traces_doubt traces_doubt_selected(const struct traces *t, size_t column, enum measure_kind kind);

/* Does any selected stack differ in this kind between the two columns? Rows may be groups of stacks, so all
 * rows may be equal even then. */
bool traces_differ(const struct traces *t, size_t column, size_t other, enum measure_kind kind);

/* Of a kind: its word for --sort ("inuse"), whether it counts bytes, and its unit. */
const char *traces_kind_word(enum measure_kind kind);
bool traces_is_bytes(const struct traces *t, enum measure_kind kind);
const char *traces_unit(const struct traces *t, enum measure_kind kind);

/* Saturates, since a sum that wraps around becomes negative. */
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
