/* SPDX-License-Identifier: Apache-2.0 */
/* A sheet: one profile of a snapshot, from rows with stack numbers to compressed bytes in a sink. */
#ifndef SAMPLER_SNAPSHOT_SHEET_H
#define SAMPLER_SNAPSHOT_SHEET_H

#include "pprof/profile/profile.h"
#include "sampler/snapshot/snapshot.h"
#include "sampler/snapshot/symbolizer.h"
#include "sampler/unwind/unwind.h"

#include <stdio.h>

struct sheet;

/* What differs between heap and event profiles. */
struct sheet_kind {
	bool allocator_stays; /* else the allocator's own frames are cut off at the inner end */
	/* Sets sample types, period, time, and the comments that follow those about process and host. */
	void (*describe)(struct profile *profile, const struct snapshot *snapshot, const struct sheet *sheet);
	/* Sets used[stack] of every stack that a row has. */
	void (*mark_stacks)(const struct sheet *sheet, bool *used);
	/* Adds a sample for every row. Returns 0 or -errno. */
	int (*fill_rows)(struct profile *profile, struct symbolizer *symbolizer,
	    const struct snapshot *snapshot, const struct sheet *sheet);
};

/* The first member of the kind's own struct. */
struct sheet {
	const struct sheet_kind *kind;
	const char *path; /* for the sink; NULL: not written this time */
};

/* Writes one profile after another. Returns 0, or -errno of the first that failed; the others are tried all
 * the same. *shared: the names that the snapshots of this writer's child have in common; see writer.h. */
int sheets_write(
    const struct snapshot *snapshot, const struct sheet *const sheets[], size_t count, void **shared);

/* Adds a comment to a profile: with a printf format, or as a text that the caller prints to `out` between two
 * calls. */
void sheet_comment(struct profile *profile, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct sheet_text {
	char *text;
	size_t bytes;
	FILE *out; /* NULL: out of memory */
};
bool sheet_text_open(struct sheet_text *text);
void sheet_text_add(struct sheet_text *text, struct profile *profile);

/* ", stack cut short 12": what did not go well, for a comment about samples. */
void sheet_print_outcomes(FILE *out, const uint64_t outcomes[UNWIND_COUNTS]);

#endif
