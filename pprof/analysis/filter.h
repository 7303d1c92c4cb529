/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which samples of a profile a reader wants to see.
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
struct profile_sample;

/* All zero lets everything pass. The patterns are the caller's. */
struct filter {
	struct pattern *focus, *ignore, *module, *thread;
	bool by_size, by_age;
	double size_min, size_max;       /* bytes, of one block: the label "bytes", or the mean of the row */
	uint64_t age_min_ns, age_max_ns; /* the label "age" says a range; it must lie within */
};

/* What a frame (a location's line) does to the stacks that it is in. */
enum filter_marks { FILTER_FOCUS = 1 << 0, FILTER_IGNORE = 1 << 1, FILTER_MODULE = 1 << 2 };
unsigned int filter_frame(
    const struct filter *filter, const char *name, const char *file, const char *module);

/* Do the marks of all frames of a stack, or-ed together, let it pass? */
bool filter_stack(const struct filter *filter, unsigned int marks);

/* Do the sample's labels? */
bool filter_labels(const struct filter *filter, const struct profile *profile, size_t sample);

/* Has some sample the label that a condition asks for? NULL, or the name of the one that is missing. */
const char *filter_missing_label(const struct filter *filter, const struct profile *profile);

/* The size in bytes of a sample's blocks by its label, 0 without one. */
double filter_size(const struct profile *profile, size_t sample);

#endif
