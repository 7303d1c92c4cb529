/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suppressions in LeakSanitizer's format: a line "leak:PATTERN" hides the leaks that have a frame whose
 * function, source file or program file contains PATTERN. '*' matches anything, '^' and '$' the beginning and
 * the end; '#' begins a comment.
 */
#ifndef PPROF_ANALYSIS_SUPPRESSIONS_H
#define PPROF_ANALYSIS_SUPPRESSIONS_H

#include "pprof/analysis/traces.h"

struct suppressions {
	char **patterns;
	uint64_t *hits; /* number of leaks that each has hidden */
	size_t count, capacity, hit_capacity;
};

/* Adds the lines of a text. A table that is all zero is empty. 0 or -ENOMEM; -EINVAL with the number of the
 * bad line in *line. */
int suppressions_add(struct suppressions *s, const char *text, size_t len, size_t *line);
void suppressions_fini(struct suppressions *s);

/* Is this row's stack hidden? Counts the hit. */
bool suppressions_match(struct suppressions *s, const struct traces *t, size_t row);

/* Pure: does the pattern match? */
bool suppressions_pattern(const char *pattern, const char *text);

#endif
