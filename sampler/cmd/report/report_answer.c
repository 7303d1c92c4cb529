/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/report_answer.h"

#include <errno.h>
#include <string.h>

/* A sum over time was in use at no time. */
static bool is_sum(const struct profile_input *input)
{
	return input->state == READ_DELTA || input->state == READ_ALL;
}

/* A single profile of another tool, or a merged one, is not expected to say what grows. */
static bool is_asked(const struct profile_input *input)
{
	const struct origin *origin = &input->origins[input->now];

	return input->state == READ_NEWEST &&
	    (input->growth_count >= TREND_POINTS_LEAST || (origin->ours && !*origin->merged));
}

int report_answer_make(struct report_answer *report, const struct profile_input *input)
{
	const struct process_set *set = &input->sets[input->now];
	struct answer_facts facts = {
	    .traces = profile_input_tables(input),
	    .column = input->now,
	    .is_peak = input->state == READ_PEAK,
	    .has_ended = set->ended == set->file_count && !set->detached,
	    .is_attached = (set->gaps & ORIGIN_GAP_ATTACHED) != 0,
	    .has_peak = input->has_peak && input->peak != input->now,
	    .peak = input->peak,
	    .point_count = input->growth_count,
	    .times_ns = input->growth_times_ns,
	    .rss_bytes = input->growth_rss_bytes,
	    .unseen = input->origins[input->now].unseen,
	    .origin = &input->origins[input->now],
	    .is_alone = input->file_count == 1,
	};
	int err = 0;

	memset(report, 0, sizeof(*report));
	if (is_asked(input))
		err = growth_make(&report->growth, facts.traces, input->growth_first, input->growth_times_ns,
		    input->growth_count);
	report->has_growth = is_asked(input) && !err;
	if (err == -ENODATA)
		err = 0;
	if (report->has_growth)
		facts.growth = &report->growth;
	if (!err)
		err = answer_make(&report->answer, &facts);
	if (is_sum(input)) {
		report->answer.held[0] = '\0';
		report->answer.held_function = "";
	}
	return err;
}

void report_answer_fini(struct report_answer *report)
{
	growth_fini(&report->growth);
}

void report_answer_print(const struct screen *screen, const struct report_answer *report)
{
	const struct answer *answer = &report->answer;
	const char *const sentences[] = {answer->held, answer->grows, answer->unseen};
	bool any = false;

	for (size_t i = 0; i < sizeof(sentences) / sizeof(*sentences); i++) {
		if (!*sentences[i])
			continue;
		screen_lines(screen, 0, sentences[i]);
		any = true;
	}
	if (any)
		putc('\n', screen->out);
}

void report_answer_of(FILE *out, char *const *paths, int count, int width)
{
	const struct screen screen = {.out = out, .width = width};
	struct report_answer answer = {0};
	struct profile_input input;
	struct options options;

	options_defaults(&options);
	options.operands = (char **)(uintptr_t)paths;
	options.operand_count = count;
	if (profile_input_open(&input, &options, true) == 0 && report_answer_make(&answer, &input) == 0)
		report_answer_print(&screen, &answer);
	report_answer_fini(&answer);
	profile_input_close(&input);
}
