/* SPDX-License-Identifier: Apache-2.0 */
/* What is still in use, by stack. */
#include "sampler/cmd/report/report.h"

#include "pprof/analysis/leaks.h"
#include "pprof/codec/file.h"
#include "pprof/export/traces_json.h"
#include "pprof/model/estimate.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/amount.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/report/lsan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAKS_SHOWN = 10, FRAMES_SHOWN = 32, SUPPRESSIONS_MAX_BYTES = 1 << 20 };

static int suppressions_read(struct suppressions *suppressions, const char *path)
{
	uint8_t *text;
	size_t len, line;
	int err = file_read(path, SUPPRESSIONS_MAX_BYTES, &text, &len);

	if (err) {
		log_line("cannot read %s: %s", path, file_read_error(err));
		return err;
	}
	err = suppressions_add(suppressions, (const char *)text, len, &line);
	free(text);
	if (err == -EINVAL)
		log_line("%s, line %zu: not a suppression; allowed: leak:PATTERN and # comments", path, line);
	return err;
}

static void print_leak(
    const struct screen *screen, const struct profile_input *input, const struct leak *leak)
{
	const struct traces *t = &input->traces;
	const uint32_t *stack = traces_stack(t, leak->row);
	struct traces_doubt doubt = traces_doubt(t, leak->row, input->now, MEASURE_INUSE);
	uint32_t depth = t->rows[leak->row].depth;
	char text[AMOUNT_BYTES];

	fprintf(screen->out, "\n%s%s%s", screen_style(screen, SCREEN_HEAD),
	    amount_bytes((double)leak->bytes, text), screen_style(screen, SCREEN_PLAIN));
	fprintf(screen->out, " (%s)",
	    estimate_doubt((double)leak->bytes, doubt.samples, doubt.variance, false, text));
	if (leak->objects > 0)
		fprintf(screen->out, " in %s object%s", amount_count((double)leak->objects, text),
		    leak->objects == 1 ? "" : "s");
	if (leak->objects > 1)
		fprintf(screen->out, " of %s on average",
		    amount_bytes((double)leak->bytes / (double)leak->objects, text));
	fputs(", allocated by\n", screen->out);
	for (uint32_t i = 0; i < depth && i < FRAMES_SHOWN; i++) {
		fputs("    ", screen->out);
		report_frame(screen, t, stack[i], screen_room(screen, 4));
		putc('\n', screen->out);
	}
	if (depth > FRAMES_SHOWN)
		fprintf(screen->out, "    (%" PRIu32 " more frames)\n", depth - FRAMES_SHOWN);
}

/* Is any of the processes? */
static bool is_running(const struct profile_input *input)
{
	const struct process_set *set = &input->sets[input->now];

	return input->origins[input->now].ours && set->ended < set->file_count;
}

static void print_leaks(
    const struct screen *screen, const struct profile_input *input, const struct leaks *leaks, size_t most)
{
	char text[2][AMOUNT_BYTES];

	bool running = is_running(input);
	const char *title = running ? "In use" : "Still in use (reachable or lost)";

	if (!running && input->origins[input->now].ours)
		title = "Still in use at exit (reachable or lost)";

	if (running)
		screen_lines(screen, 0,
		    "The program was still running when this was written: what is in use is not lost yet.");
	for (size_t i = 0; i < leaks->count && i < most; i++)
		print_leak(screen, input, &leaks->leaks[i]);
	if (leaks->count > most)
		fprintf(screen->out, "\n... %zu more stacks\n", leaks->count - most);
	fprintf(screen->out, "\n%s%s: %s", screen_style(screen, SCREEN_HEAD), title,
	    amount_bytes((double)leaks->bytes, text[0]));
	if (!input->traces.unsure && leaks->variance > 0)
		fprintf(screen->out, " +- %s", amount_bytes(sqrt(leaks->variance), text[1]));
	fprintf(screen->out, " in %s object%s, %zu stack%s%s\n",
	    amount_count((double)leaks->objects, text[0]), leaks->objects == 1 ? "" : "s", leaks->count,
	    leaks->count == 1 ? "" : "s", screen_style(screen, SCREEN_PLAIN));
	if (leaks->suppressed)
		fprintf(screen->out, "suppressed: %s in %zu stack%s\n",
		    amount_bytes((double)leaks->suppressed_bytes, text[0]), leaks->suppressed,
		    leaks->suppressed == 1 ? "" : "s");
}

static void write_leak(struct json *json, const struct profile_input *input, const struct leak *leak)
{
	const struct traces *t = &input->traces;
	struct traces_doubt doubt = traces_doubt(t, leak->row, input->now, MEASURE_INUSE);

	json_object(json, NULL);
	json_integer(json, "bytes", leak->bytes);
	json_integer(json, "objects", leak->objects);
	if (!t->unsure) {
		json_number(json, "bytes_error", sqrt(doubt.variance), 1);
		json_number(json, "samples", doubt.samples, 1);
	}
	traces_json_stack(json, t, leak->row);
	json_end(json);
}

/* Writes the stacks; with -n at most so many. */
static void write_leaks(FILE *out, const struct profile_input *input, const struct report_answer *answer,
    const struct leaks *leaks, int32_t rows)
{
	struct json json = {.out = out};
	size_t most = rows ? (size_t)rows : leaks->count;

	report_json_head(&json, input, answer, input->now);
	json_boolean(&json, "running", is_running(input));
	json_object(&json, "leaked");
	json_integer(&json, "bytes", leaks->bytes);
	json_integer(&json, "objects", leaks->objects);
	json_integer(&json, "stacks", (int64_t)leaks->count);
	if (!input->traces.unsure)
		json_number(&json, "bytes_error", sqrt(leaks->variance), 1);
	json_end(&json);
	json_object(&json, "suppressed");
	json_integer(&json, "bytes", leaks->suppressed_bytes);
	json_integer(&json, "stacks", (int64_t)leaks->suppressed);
	json_end(&json);
	json_array(&json, "leaks");
	for (size_t i = 0; i < leaks->count && i < most; i++)
		write_leak(&json, input, &leaks->leaks[i]);
	json_end(&json);
	report_json_growth(&json, input, answer);
	json_end(&json);
}

/* The program's own suppressions count too, if its file has not changed. */
static int suppressions_open(
    struct suppressions *suppressions, const struct profile_input *input, const char *path)
{
	char *text;
	size_t line;
	int err = path ? suppressions_read(suppressions, path) : 0;

	if (err)
		return err;
	text = lsan_suppressions(&input->traces, &input->origins[input->now]);
	if (text && suppressions_add(suppressions, text, strlen(text), &line))
		log_line("cannot parse the program's own suppressions from line %zu on", line);
	free(text);
	return 0;
}

int report_leaks(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct options *options)
{
	const struct read_options *read = &options->read;
	struct suppressions suppressions = {0};
	struct leaks leaks = {0};
	char text[2][AMOUNT_BYTES];
	int status = 1;

	if (!traces_has(&input->traces, MEASURE_INUSE)) {
		log_line("--leaks: this profile does not say what is in use");
		return 1;
	}
	if (suppressions_open(&suppressions, input, read->suppressions) == 0 &&
	    leaks_find(&leaks, &input->traces, input->now, &suppressions) == 0) {
		const int32_t most = read->rows ? read->rows : LEAKS_SHOWN;

		status = 0;
		if (read->json) {
			write_leaks(screen->out, input, answer, &leaks, read->rows);
		} else {
			print_leaks(screen, input, &leaks, (size_t)most);
			if (answer->has_growth)
				status = report_growth(screen, input, &answer->growth, most);
		}
	}
	if (!status && leaks.bytes > 0 && (uint64_t)leaks.bytes > read->fail_over_bytes) {
		log_line("%s still in use, more than the %s of --fail-over",
		    amount_bytes((double)leaks.bytes, text[0]),
		    amount_bytes((double)read->fail_over_bytes, text[1]));
		status = STATUS_FAIL_OVER;
	}
	leaks_fini(&leaks);
	suppressions_fini(&suppressions);
	return status;
}
