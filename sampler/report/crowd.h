/* SPDX-License-Identifier: Apache-2.0 */
/* A crowd: the processes that a column adds up, as the headline names them. */
#ifndef SAMPLER_REPORT_CROWD_H
#define SAMPLER_REPORT_CROWD_H

#include "pprof/profile/origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crowd {
	size_t file_count, process_count;
	size_t ended;    /* profiles that were written when their process ended, or heaptap detached */
	size_t detached; /* of these, by processes that ran on */
	/* The sum of what they say: samples, those of them without a stack, inherited ones without. */
	uint64_t taken, lost, lost_inherited;
	char samples[512]; /* "8234 taken, 2 lost stacks": of one profile as in its comment; "" unknown */
	int64_t period_least, period_most;
	uint32_t gaps;           /* enum origin_gap, of any */
	int64_t inherited_bytes; /* in use in several of them: see profile_files.h; not set by crowd_make() */
	char programs[256];      /* "nginx (3), sh": the most frequent first, most of them */
};

/* Of the files of one column; process_count: how many processes they are of. -ENOMEM. */
int crowd_make(struct crowd *crowd, const struct origin *const *origins, size_t count, size_t process_count);

/* "7 processes: bash (6), pyenv-hooks", for one headline; "" if it is not more than one. */
const char *crowd_describe(const struct crowd *crowd, char *text, size_t text_bytes);

#endif
