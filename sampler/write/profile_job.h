/* SPDX-License-Identifier: Apache-2.0 */
/* One profile of a snapshot, from rows with stack numbers to compressed bytes in a sink. The writer's child
 * does this job. */
#ifndef SAMPLER_WRITE_PROFILE_JOB_H
#define SAMPLER_WRITE_PROFILE_JOB_H

#include "pprof/model/profile.h"
#include "sampler/unwind/unwind.h"
#include "sampler/write/snapshot.h"
#include "sampler/write/symbolizer.h"

#include <stdio.h>

struct profile_job;

/* What differs between heap and event profiles. */
struct profile_job_kind {
	bool allocator_stays; /* else the allocator's own frames are cut off at the inner end */
	/* Sets sample types, period, time, and the comments that follow those about process and host. */
	void (*describe)(
	    struct profile *profile, const struct snapshot *snapshot, const struct profile_job *job);
	/* Sets used[stack] of every stack that a row has. */
	void (*mark_stacks)(const struct profile_job *job, bool *used);
	/* Adds a sample for every row. Returns 0 or -errno. */
	int (*fill_rows)(struct profile *profile, struct symbolizer *symbolizer,
	    const struct snapshot *snapshot, const struct profile_job *job);
};

/* The first member of the kind's own struct. */
struct profile_job {
	const struct profile_job_kind *kind;
	const char *path; /* for the sink; NULL: not written this time */
};

/* Writes all the profiles, even if one fails. Returns 0 or -errno of the first that failed. *shared: the
 * names of functions that all snapshots of this writer's child use; see writer.h. */
int profile_jobs_write(
    const struct snapshot *snapshot, const struct profile_job *const jobs[], size_t count, void **shared);

/* Adds a comment to a profile. The first takes a printf format. With the other two the caller prints the
 * comment to text->out between open and add. */
void profile_job_comment(struct profile *profile, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct profile_job_text {
	char *text;
	size_t bytes;
	FILE *out; /* NULL if out of memory */
};
bool profile_job_text_open(struct profile_job_text *text);
void profile_job_text_add(struct profile_job_text *text, struct profile *profile);

/* Prints how many stacks are not complete, by the reason: ", stack cut short 12". */
void profile_job_print_outcomes(FILE *out, const uint64_t outcomes[UNWIND_COUNTS]);

#endif
