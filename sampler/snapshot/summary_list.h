/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the summary at the end of a session is made of: COMMAND, the processes with the largest peaks, those
 * that a signal ended, and sums of all others. Bounded, however many processes there are.
 */
#ifndef SAMPLER_SNAPSHOT_SUMMARY_LIST_H
#define SAMPLER_SNAPSHOT_SUMMARY_LIST_H

#include "proto/weight.h"
#include "sampler/heap/unseen.h"
#include "sampler/region/region.h"
#include "sampler/region/tally.h"
#include "sampler/snapshot/process_end.h"
#include "sampler/target/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SUMMARY_ROWS = 10, SUMMARY_ALARMS = 5 }; /* beside COMMAND's row */

/* An estimate as the profile's reader will compute it: with the same error (pprof/profile/estimate.h). */
struct summary_estimate {
	uint64_t samples;
	double bytes, objects, bytes_variance, objects_variance;
};

/* One program of one process, which has ended. */
struct summary_row {
	char title[TARGET_TITLE_BYTES];
	char full_name[PROCESS_NAME_BYTES]; /* "": the title says all that is known */
	pid_t pid;
	bool command; /* COMMAND, in its last program */
	char end[PROCESS_END_BYTES];
	enum process_end_alarm alarm;
	uint64_t period_bytes;
	bool has_peak;
	bool certain; /* what was not sampled is known to be small: see summary_bound_bytes() */
	struct summary_estimate peak, at_end;
	uint64_t samples, stackless;
	char *path, *peak_path; /* its last profiles, owned; NULL: there is none */
	/* Of the image, if the process is its first: see region.h. */
	uint64_t placeless, not_cut_off, not_afforded;
	struct unseen unseen;    /* of it: the first is the one with most bytes */
	bool hidden;             /* it may have allocated much that is not seen: no sample says nothing */
	bool stripped;           /* that is so because an allocator inside could not be found */
	char *block;             /* lines about it alone, each with a newline; owned */
	char *resident;          /* lines about what its resident memory consists of; owned; NULL: not said */
	uint64_t resident_bytes; /* that they are about */
};

void summary_row_fini(struct summary_row *row);

/* Copies a title, which is the target's word, without what would begin a line or move the cursor. */
void summary_title(char copy[TARGET_TITLE_BYTES], const char title[TARGET_TITLE_BYTES]);

/* By which rows are sorted: the peak, or what was in use at the end if that is more. */
double summary_row_bytes(const struct summary_row *row);

/* The profile to be opened first: the peak's if at the end there is under a tenth of it. NULL: none. */
const char *summary_row_path(const struct summary_row *row);

/* A heap of which nothing was sampled has fewer bytes than this with 95 % probability: a sample is taken of B
 * bytes with probability 1 - exp(-B / period), so B < -ln(0.05) * period. 0: everything is recorded. */
double summary_bound_bytes(uint64_t period_bytes);

struct summary_list {
	struct summary_row rows[SUMMARY_ROWS]; /* the largest first */
	size_t row_count;
	struct summary_row command;
	bool has_command;
	struct summary_alarm { /* the worst first, of these the largest; COMMAND is not among them */
		char title[TARGET_TITLE_BYTES];
		pid_t pid;
		char end[PROCESS_END_BYTES];
		enum process_end_alarm alarm;
		double bytes;
		uint64_t samples;
	} alarms[SUMMARY_ALARMS];
	size_t alarm_count;
	uint64_t alarms_all;
	uint64_t processes, samples, stackless; /* of all rows ever added */
	struct summary_rest {                   /* those that have no row any more */
		uint64_t processes, samples, at_end_samples;
		double peak_bytes, at_end_bytes;
		bool uncertain;        /* one of them: see summary_row */
		uint64_t period_bytes; /* the largest */
	} rest;
	/* Without a profile, having fewer samples than is asked for: what they themselves counted. */
	struct summary_omitted {
		uint64_t processes, unsampled; /* unsampled: of these, without any sample */
		struct tally allocated;
		double at_end_bytes;
	} omitted;
	/* processes, see region.h; and the program of which most is not seen, and why */
	uint64_t placeless, not_cut_off, not_afforded;
	char unseen_title[TARGET_TITLE_BYTES];
	struct unseen_text unseen;
};

/* Takes what the row owns, and leaves it empty. */
void summary_list_add(struct summary_list *list, struct summary_row *row);

/* A process that leaves no profile. at_end: its own count of what is in use. */
void summary_list_omit(struct summary_list *list, const struct target *target, struct tally allocated,
    struct tally at_end, double peak_bytes);

bool summary_list_empty(const struct summary_list *list);

/* Frees the rows and begins anew. */
void summary_list_clear(struct summary_list *list);

#endif
