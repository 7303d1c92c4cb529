/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters: which samples of a profile are shown.
 *
 * A sample stays if every condition holds: a frame matches focus, none matches ignore, a frame is from a file
 * that module matches, and its labels fit. A frame is matched by its function's name and its source file's.
 */
#ifndef PPROF_ANALYSIS_FILTER_H
#define PPROF_ANALYSIS_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern;
struct profile;
struct profile_label;

/* All zero keeps everything. The caller owns the patterns. */
struct filter {
	struct pattern *focus, *ignore, *module, *thread;
	struct pattern *hide; /* frames, not samples: left out of their stacks */
	bool by_size, by_age;
	double size_min, size_max;       /* bytes, of one block: the label "bytes", or the mean of the row */
	uint64_t age_min_ns, age_max_ns; /* the range in the label "age" must lie within these */
};

/* Regular expressions as users give them; NULL: not given. */
struct filter_texts {
	const char *focus, *ignore, *module, *thread, *hide;
};

/* Makes the patterns. 0; -EINVAL with one line in error: "--focus: '(' is ...", where prefix is "--";
 * -ENOMEM. The caller ends it with filter_close() in all cases. */
int filter_open(struct filter *filter, const struct filter_texts *texts, const char *prefix, char *error,
    size_t error_bytes);
void filter_close(struct filter *filter);

/* Which conditions a frame (a line of a location) matches. */
enum filter_marks {
	FILTER_FOCUS = 1 << 0,
	FILTER_IGNORE = 1 << 1,
	FILTER_MODULE = 1 << 2,
	FILTER_HIDE = 1 << 3
};
unsigned int filter_frame(
    const struct filter *filter, const char *name, const char *file, const char *module);

/* Does a stack pass? marks: the marks of all its frames, or-ed together. */
bool filter_stack(const struct filter *filter, unsigned int marks);

/* Do the labels of a sample pass? thread: the name of its thread, NULL if unknown. */
bool filter_labels(
    const struct filter *filter, const struct profile *profile, size_t sample, const char *thread);

/* Do the blocks of a sample have the size that is wanted? size is filter_size(). If it is 0, the mean size
 * counts: of what was allocated, else of what is in use. */
struct filter_block {
	double size, objects, bytes, inuse_objects, inuse_bytes;
};
bool filter_size_fits(const struct filter *filter, const struct filter_block *block);

/* The name of a label that has a condition and that no sample has. NULL if there is none. */
const char *filter_missing_label(const struct filter *filter, const struct profile *profile);

/* The sample's label with this key; false: it has none. */
bool filter_label(const struct profile *profile, size_t sample, const char *key, struct profile_label *found);

/* Has any sample this label? */
bool filter_label_exists(const struct profile *profile, const char *key);

/* Size in bytes of a sample's blocks, from its label "bytes"; 0 without one. */
double filter_size(const struct profile *profile, size_t sample);

#endif
