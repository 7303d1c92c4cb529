/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/export.h"

#include "pprof/export/csv.h"
#include "pprof/export/flamegraph.h"
#include "pprof/export/folded.h"
#include "pprof/export/gprof2dot.h"
#include "pprof/export/heaptrack.h"
#include "pprof/export/massif.h"
#include "pprof/export/speedscope.h"
#include "sampler/cli/status.h"
#include "sampler/terminal/log_line.h"
#include "sampler/report/profile_input.h"
#include "sampler/terminal/screen.h"
#include "sampler/terminal/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static int write_massif(
    FILE *out, const struct profile_input *input, enum measure_kind kind, const struct read_options *read)
{
	struct massif_options options = {
	    .command = input->traces.options.anonymize ? "program" : input->origins[0].program,
	    .column_count = input->series_count,
	    .threshold_permille = read->threshold_permille,
	};
	int64_t *time_ns = calloc(input->traces.column_count, sizeof(*time_ns));
	int err = -ENOMEM;

	for (size_t i = 0; time_ns && i < input->traces.column_count; i++)
		time_ns[i] = input->origins[i].time_ns;
	options.time_ns = time_ns;
	if (time_ns)
		err = massif_write(out, &input->traces, kind, &options);
	free(time_ns);
	return err;
}

static int write_heaptrack(FILE *out, const struct profile_input *input, size_t column)
{
	const char *command = input->traces.options.anonymize ? "program" : input->origins[column].program;
	uint64_t scale = 1;
	int err = heaptrack_write(out, &input->traces, column, command, &scale);

	if (!err && scale > 1)
		log_line("too many blocks for heaptrack: each stands for up to %" PRIu64 "; bytes are exact",
		    scale);
	return err;
}

static int write_format(FILE *out, const struct profile_input *input, enum measure_kind kind, size_t column,
    const struct options *options)
{
	const struct traces *t = &input->traces;
	const char *name = t->options.anonymize || !*input->origins[column].program
	    ? "heap profile"
	    : input->origins[column].program;

	switch (options->read.format) {
	case FORMAT_FOLDED:
		folded_write(out, t, column, kind);
		return 0;
	case FORMAT_FLAMEGRAPH:
		return flamegraph_write(out, t, column, kind, name);
	case FORMAT_SPEEDSCOPE:
		speedscope_write(out, t, column, kind, name);
		return 0;
	case FORMAT_JSON:
		gprof2dot_write(out, t, column, kind);
		return 0;
	case FORMAT_CSV:
		return csv_write(out, t, column, kind);
	case FORMAT_MASSIF:
		return write_massif(out, input, kind, &options->read);
	case FORMAT_HEAPTRACK:
		return write_heaptrack(out, input, column);
	default:
		return -EINVAL;
	}
}

/* massif knows bytes, heaptrack a heap; the others show whatever there is. */
static int check_format(const struct profile_input *input, enum measure_kind kind, enum export_format format)
{
	if (format == FORMAT_MASSIF && !traces_is_bytes(&input->traces, kind)) {
		log_line("--format massif shows bytes; allowed with it: --sort inuse or alloc");
		return 1;
	}
	if (format == FORMAT_HEAPTRACK && !traces_has(&input->traces, MEASURE_INUSE)) {
		log_line("--format heaptrack needs a heap profile, and this is not one");
		return 1;
	}
	return 0;
}

/* "folded, flamegraph or json" */
static const char *formats_list(char *text, size_t text_bytes)
{
	text[0] = '\0';
	for (int i = 0; i < FORMAT_COUNT; i++)
		text_append(text, text_bytes, "%s%s",
		    i == 0                     ? ""
		        : i + 1 < FORMAT_COUNT ? ", "
		                               : " or ",
		    export_format_name((enum export_format)i));
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

	if (options->read.format == FORMAT_COUNT) {
		log_line("--format is missing; allowed: %s", formats_list(list, sizeof(list)));
		return STATUS_USAGE;
	}
	status = profile_input_open(&input, options);
	if (!status)
		status = profile_input_kind(&input, options->read.sort, &kind, &column);
	if (!status)
		status = check_format(&input, kind, options->read.format);
	if (!status && screen_open(&screen, options->output, false, options->read.memory_max_bytes) == 0) {
		int err = write_format(screen.out, &input, kind, column, options);

		if (err)
			profile_input_say_memory(&options->read, err);
		status = screen_close(&screen, err ? 1 : 0);
	}
	profile_input_close(&input);
	return status;
}
