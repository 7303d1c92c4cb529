/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap export: a profile in the formats of other tools. */
#include "pprof/export/format.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/report/nothing.h"
#include "sampler/cmd/report/profile_input.h"
#include "sampler/cmd/report/report_answer.h"
#include "sampler/linux/screen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* The sentences of `heaptap report`. An anonymous profile has none of the sentences of the sampler. */
static int make_answer(
    struct report_answer *report, const struct profile_input *input, const struct options *options)
{
	int err = report_answer_make(report, input);

	if (options->read.anonymize)
		report->answer.unseen[0] = '\0';
	return err;
}

static int write_format(FILE *out, const struct profile_input *input, size_t column, enum measure_kind kind,
    const struct options *options)
{
	const struct traces *t = &input->traces;
	const struct process_set *set = &input->sets[column];
	struct origin origin = input->origins[column];
	const char *program = origin.program;
	const bool has_answer = export_formats[options->read.format].needs & EXPORT_ANSWER;
	struct report_answer report = {0};
	char several[512];
	int64_t *time_ns = calloc(t->column_count, sizeof(*time_ns));
	uint64_t scale = 1;

	nothing_matches_say(t, &options->read);
	if (*process_set_describe(set, several, sizeof(several))) {
		origin.pid = 0; /* the pid of one process says nothing about several */
		origin.cause[0] = '\0';
	}
	const struct export_request request = {
	    .column = column,
	    .kind = kind,
	    .title = t->options.anonymize ? "heap profile"
	        : *several                ? several
	        : *program                ? origin.name
	                                  : "heap profile",
	    .origin = &origin,
	    .samples = set->samples,
	    .ended = set->ended == set->file_count,
	    .has_peak = input->has_peak || input->peak != column,
	    .peak = input->peak,
	    .peak_is_snapshot = !input->has_peak,
	    .answer = has_answer ? &report.answer : NULL,
	    .program = t->options.anonymize ? "program" : program,
	    .series_count = input->series_count,
	    .time_ns = time_ns,
	    .threshold_permille = options->read.threshold_permille,
	    .scale = &scale,
	};

	for (size_t i = 0; time_ns && i < t->column_count; i++)
		time_ns[i] = input->origins[i].time_ns;
	int err = time_ns ? 0 : -ENOMEM;
	if (!err && has_answer)
		err = make_answer(&report, input, options);
	if (!err)
		err = export_formats[options->read.format].write(out, t, &request);
	if (!err && scale > 1)
		log_line("too many blocks for %s: each stands for up to %" PRIu64 "; bytes are exact",
		    export_format_names[options->read.format], scale);
	report_answer_fini(&report);
	free(time_ns);
	return err;
}

static int check_format(const struct profile_input *input, enum measure_kind kind, size_t number)
{
	const struct export_format *format = &export_formats[number];

	if ((format->needs & EXPORT_BYTES_ONLY) && !traces_is_bytes(&input->traces, kind)) {
		log_line("--format %s shows bytes; allowed with it: --sort inuse or alloc", format->name);
		return 1;
	}
	if ((format->needs & EXPORT_HEAP_ONLY) && !traces_has(&input->traces, MEASURE_INUSE)) {
		log_line("--format %s needs a heap profile, and this is not one", format->name);
		return 1;
	}
	return 0;
}

/* "folded, flamegraph or json" */
static const char *formats_list(char *text, size_t text_bytes)
{
	text[0] = '\0';
	for (size_t i = 0; export_format_names[i]; i++)
		text_append(text, text_bytes, "%s%s",
		    i == 0                           ? ""
		        : export_format_names[i + 1] ? ", "
		                                     : " or ",
		    export_format_names[i]);
	return text;
}

int export_run(struct options *options)
{
	char list[256];
	struct profile_input input;
	struct screen screen;
	enum measure_kind kind;
	size_t column;
	int status;

	if (options->read.format < 0) {
		log_line("--format is missing; allowed: %s", formats_list(list, sizeof(list)));
		return STATUS_USAGE;
	}
	if (export_formats[options->read.format].needs & EXPORT_FILE && !options->output &&
	    isatty(STDOUT_FILENO)) {
		log_line("%s is not for a terminal: use -o FILE, or redirect the output",
		    export_format_names[options->read.format]);
		return STATUS_USAGE;
	}
	status = profile_input_open(&input, options, false);
	if (!status)
		status = profile_input_kind(&input, options->read.sort, &kind, &column);
	if (!status)
		status = check_format(&input, kind, (size_t)options->read.format);
	if (!status && screen_open(&screen, options->output, false, options->read.memory_max_bytes) == 0) {
		int err = write_format(screen.out, &input, column, kind, options);

		if (err)
			profile_input_say_memory(&options->read, err);
		status = screen_close(&screen, err ? 1 : 0);
	}
	profile_input_close(&input);
	return status;
}
