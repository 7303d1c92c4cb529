/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the summary at the end of a session: COMMAND, those with the largest peaks, those that a
 * signal ended, and sums of all others. Its size is bounded, however many processes there are.
 */
#ifndef SAMPLER_WRITE_SUMMARY_LIST_H
#define SAMPLER_WRITE_SUMMARY_LIST_H

#include "proto/weight.h"
#include "sampler/books/unseen.h"
#include "sampler/intake/region.h"
#include "sampler/intake/tally.h"
#include "sampler/intake/target.h"
#include "sampler/write/end_phrase.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct heap_snapshot;

enum { SUMMARY_ROWS = 10, SUMMARY_ALARMS = 5 }; /* without COMMAND's row */

/* An estimate as heaptap report computes it from the profile, with the same error (pprof/model/estimate.h).
 * */
struct summary_estimate {
	uint64_t samples;
	double bytes, objects, bytes_variance, objects_variance;
};

/* One program of one process, which has ended. */
struct summary_row {
	char title[TARGET_TITLE_BYTES];
	char full_name[PROCESS_NAME_BYTES]; /* "": no longer name is known than the title */
	pid_t pid;
	bool command; /* COMMAND, in its last program */
	char end[END_PHRASE_BYTES];
	enum end_phrase_alarm alarm;
	uint64_t period_bytes;
	bool has_peak;
	bool certain; /* what was not sampled is bounded: see summary_bound_bytes() */
	struct summary_estimate peak, at_end;
	uint64_t samples, stackless;
	char *path, *peak_path; /* of its last profiles, owned; NULL: there is none */
	/* Counts of the program run, in the row of its first process: see region.h. */
	uint64_t placeless, not_cut_off, not_afforded;
	struct unseen unseen; /* what is not seen of it, the most bytes first */
	bool hidden;    /* it may have allocated much that is not seen, so having no sample says nothing */
	bool stripped;  /* hidden because an allocator inside the program could not be found */
	char *block;    /* lines about this process, each with a newline; owned */
	char *resident; /* lines about its resident memory; owned; NULL: none */
	uint64_t resident_bytes; /* the resident memory of those lines */
};

void summary_row_fini(struct summary_row *row);

/* Copies a title. The target chose it, so bytes that begin a line or move the cursor are replaced. */
void summary_title(char copy[TARGET_TITLE_BYTES], const char title[TARGET_TITLE_BYTES]);

/* The bytes by which rows are sorted: the peak, or what was in use at the end if that is more. */
double summary_row_bytes(const struct summary_row *row);

/* The profile to open first: that of the peak, if under a tenth of the peak is left at the end. NULL if there
 * is none. */
const char *summary_row_path(const struct summary_row *row);

/* If nothing was sampled, the heap has fewer bytes than this with 95 % probability: of B bytes a sample is
 * taken with probability 1 - exp(-B / period), so B < -ln(0.05) * period. 0 if every block is recorded. */
double summary_bound_bytes(uint64_t period_bytes);

struct summary_list {
	struct summary_row rows[SUMMARY_ROWS]; /* the largest first */
	size_t row_count;
	struct summary_row command;
	bool has_command;
	struct summary_alarm { /* the worst end first, then the largest; without COMMAND */
		char title[TARGET_TITLE_BYTES];
		pid_t pid;
		char end[END_PHRASE_BYTES];
		enum end_phrase_alarm alarm;
		double bytes;
		uint64_t samples;
	} alarms[SUMMARY_ALARMS];
	size_t alarm_count;
	uint64_t alarms_all;
	uint64_t processes, samples, stackless; /* sums of all rows ever added */
	struct summary_rest {                   /* processes that have no row any more */
		uint64_t processes, samples, at_end_samples;
		double peak_bytes, at_end_bytes;
		bool uncertain;        /* one of them is not `certain`: see summary_row */
		uint64_t period_bytes; /* the largest */
	} rest;
	/* Processes of too few samples for a profile: the sums of their own counts. */
	struct summary_omitted {
		uint64_t processes;
		struct tally allocated;
		double at_end_bytes;
	} omitted;
	/* Processes that are not profiled, see region.h. Then the program of which most bytes are not seen,
	 * and why. */
	uint64_t placeless, not_cut_off, not_afforded;
	char unseen_title[TARGET_TITLE_BYTES];
	struct unseen_text unseen;
};

/* Adds the row, and takes over what it owns. */
void summary_list_add(struct summary_list *list, struct summary_row *row);

/* Adds a process that leaves no profile. at_end: its own count of what is in use. */
void summary_list_omit(struct summary_list *list, const struct target *target, struct tally allocated,
    struct tally at_end, double peak_bytes);

/* Frees the rows and makes the list empty. */
void summary_list_clear(struct summary_list *list);

/* Fills a row of the table from the last snapshot of a process, with the block of lines that is shown if the
 * process is the only one. end: how the process ended, in words. error: 0, or -errno if the profile could not
 * be written. summary_row_fini() frees the row. */
void summary_list_make_row(
    struct summary_row *row, const struct heap_snapshot *snapshot, const char *end, int error);

#endif
