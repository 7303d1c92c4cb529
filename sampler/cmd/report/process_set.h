/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that a column adds up, as the headline names them. */
#ifndef SAMPLER_CMD_REPORT_PROCESS_SET_H
#define SAMPLER_CMD_REPORT_PROCESS_SET_H

#include "pprof/model/origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process_set {
	size_t file_count, process_count;
	size_t ended;    /* profiles that were written when their process ended, or heaptap detached */
	size_t detached; /* of these, by processes that ran on */
	/* sums of what the profiles say: samples, those without a stack, inherited ones without a stack */
	uint64_t taken, lost, lost_inherited;
	char samples[512]; /* "8234 taken, 2 lost stacks": of one profile as in its comment; "" unknown */
	int64_t period_least, period_most;
	uint32_t gaps; /* enum origin_gap, of any */
	int64_t
	    inherited_bytes; /* in use in several of them (profile_files.h); process_set_make() leaves 0 */
	char programs[256];  /* "nginx (3), sh": the most frequent first, most of them */
};

/* Of the files of one column, which are of so many processes. 0 or -ENOMEM. */
int process_set_make(
    struct process_set *set, const struct origin *const *origins, size_t count, size_t process_count);

/* "7 processes: bash (6), pyenv-hooks", for a headline; "" for one process. */
const char *process_set_describe(const struct process_set *set, char *text, size_t text_bytes);

#endif
