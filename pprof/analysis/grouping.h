/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are not functions: the stack of a sample becomes one frame, which is the value of a label, or the
 * process that the profile is of. Totals, tables and trees then work as they do for functions.
 */
#ifndef PPROF_ANALYSIS_GROUPING_H
#define PPROF_ANALYSIS_GROUPING_H

#include <stddef.h>

struct profile;

enum grouping { GROUP_FUNCTION, GROUP_THREAD, GROUP_PROCESS, GROUP_SIZE, GROUP_AGE, GROUP_LIFETIME };

enum { GROUPING_TEXT_BYTES = 320 };

/* The group of a sample: "worker (4711)", "redis-server (4711)", "up to 64 B", "1ms-10ms"; in brackets where
 * the sample has no such label. thread: the name of its thread; NULL: unknown. Not for GROUP_FUNCTION. */
void grouping_name(enum grouping grouping, const struct profile *profile, size_t sample, const char *thread,
    char text[GROUPING_TEXT_BYTES]);

/* The value for --labels that would give samples the label: "thread". NULL if a sample has the label, or none
 * is needed. */
const char *grouping_missing_label(enum grouping grouping, const struct profile *profile);

#endif
