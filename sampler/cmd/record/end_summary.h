/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user is told when COMMAND has ended, and again when the session is over: the profiles that were
 * written, the programs that could not be profiled, and the answer (pprof/export/answer.h), which is what
 * `heaptap report` says first of these profiles. They are read in a child, which has a bounded time.
 */
#ifndef SAMPLER_CMD_RECORD_END_SUMMARY_H
#define SAMPLER_CMD_RECORD_END_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

struct heap_capture;
struct options;

struct end_summary {
	bool said;        /* at COMMAND's end */
	char missed[512]; /* what was said then of programs that were not profiled */
};

/* Writes the answer for these files, in lines of at most `width` columns (0: no limit). */
typedef void end_summary_answer(FILE *out, char *const *paths, int count, int width);

/* `heaptap report` is above this folder, so main() names the function. NULL: there is no answer. */
void end_summary_answer_by(end_summary_answer *write);

/* Logs the summary of the processes that have ended since the last call. last: the session is over; processes
 * may outlive COMMAND. */
void end_summary_say(
    struct end_summary *summary, const struct options *options, struct heap_capture *heap, bool last);

#endif
