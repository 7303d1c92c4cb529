/* SPDX-License-Identifier: Apache-2.0 */
/* The answer (pprof/export/answer.h) for the profiles that a report is about, and the growth behind it. */
#ifndef SAMPLER_CMD_REPORT_REPORT_ANSWER_H
#define SAMPLER_CMD_REPORT_REPORT_ANSWER_H

#include "pprof/analysis/growth.h"
#include "pprof/export/answer.h"
#include "sampler/cmd/report/profile_input.h"
#include "sampler/linux/screen.h"

#include <stdio.h>

struct report_answer {
	bool has_growth; /* growth was looked for; of fewer than TREND_POINTS_LEAST points nothing is known */
	struct growth growth; /* with the frames of profile_input_tables() */
	struct answer answer;
};

/* 0 or -ENOMEM. The caller ends it with report_answer_fini() in both cases, before the input. */
int report_answer_make(struct report_answer *report, const struct profile_input *input);
void report_answer_fini(struct report_answer *report);

/* Prints what a report of these profiles begins with. Nothing if they cannot be read. */
void report_answer_of(FILE *out, char *const *paths, int count, int width);

/* Prints each sentence, and an empty line behind them. Nothing if there is no sentence. */
void report_answer_print(const struct screen *screen, const struct report_answer *report);

#endif
