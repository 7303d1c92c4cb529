/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of what is in use, the largest first. If the profile was written when its program ended, these
 * are the leaks. Suppressions hide leaks. */
#ifndef PPROF_ANALYSIS_LEAKS_H
#define PPROF_ANALYSIS_LEAKS_H

#include "pprof/analysis/traces.h"

/*
 * Suppressions in LeakSanitizer's format: a line "leak:PATTERN" hides the leaks that have a frame whose
 * function, source file or program file contains PATTERN. '*' matches anything, '^' and '$' the beginning and
 * the end; '#' begins a comment. All zero: none.
 */
struct suppressions {
	char **patterns;
	uint64_t *hits; /* number of leaks that each has hidden */
	size_t count, capacity, hit_capacity;
};

/* Adds the lines of a text. 0 or -ENOMEM; -EINVAL with the number of the bad line in *line. */
int suppressions_add(struct suppressions *s, const char *text, size_t len, size_t *line);
void suppressions_fini(struct suppressions *s);

/* Pure: does the pattern match? */
bool suppressions_pattern(const char *pattern, const char *text);

struct leak {
	uint32_t row; /* of the traces */
	int64_t bytes, objects;
};

struct leaks {
	struct leak *leaks;
	size_t count;
	int64_t bytes, objects, suppressed_bytes;
	size_t suppressed;
	double variance; /* of bytes */
};

/* suppressions: NULL none. 0 or -ENOMEM; the caller ends it with leaks_fini() in both cases. */
int leaks_find(struct leaks *leaks, const struct traces *t, size_t column, struct suppressions *suppressions);
void leaks_fini(struct leaks *leaks);

#endif
