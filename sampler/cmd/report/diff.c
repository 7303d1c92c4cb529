/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap diff BASE NEW: what changed between two profiles, and which changes are larger than the sampling
 * error. */
#include "pprof/analysis/column_diff.h"
#include "pprof/export/answer.h"
#include "pprof/export/growth_text.h"
#include "pprof/model/estimate.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/amount.h"
#include "pprof/text/json.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/report/nothing.h"
#include "sampler/cmd/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_DEFAULT = 25 };

struct comparing {
	const struct screen *screen;
	const struct profile_input *input;
	const struct read_options *read;
	struct column_diff compared;
	double *changes; /* by row of the traces */
	enum measure_kind kind;
	bool same_process;
};

static const struct column_diff_sum *sum_of(const struct comparing *c, const struct column_diff_row *row)
{
	return c->read->cum ? &row->cum : &row->flat;
}

static void print_signed(const struct comparing *c, double value)
{
	char text[AMOUNT_BYTES], with_sign[AMOUNT_BYTES + 1];

	amount_measure(value, traces_unit(&c->input->traces, c->kind), text);
	snprintf(with_sign, sizeof(with_sign), "%s%s", value > 0 ? "+" : "", text);
	fprintf(c->screen->out, "%10s", with_sign);
}

static void print_plain(const struct comparing *c, double value)
{
	char text[AMOUNT_BYTES];

	fprintf(
	    c->screen->out, " %10s", amount_measure(value, traces_unit(&c->input->traces, c->kind), text));
}

static void print_sum(const struct comparing *c, const struct column_diff_sum *sum)
{
	double change = sum->after - sum->before;
	char doubt[AMOUNT_BYTES];

	print_signed(c, change);
	fprintf(c->screen->out, " %9s",
	    estimate_doubt(change, sum->samples, sum->variance,
	        c->input->traces.unsure || c->kind == MEASURE_OTHER, doubt));
	if (!screen_is_narrow(c->screen))
		print_plain(c, sum->before);
	print_plain(c, sum->after);
}

/* Where a row's name begins, with and without the column of BASE: a narrow screen has no room for it. */
enum { NAME_AT = 50, NAME_AT_NARROW = 39 };

/* '*' marks what matters: a change that is larger than the sampling error. */
static void print_row(const struct comparing *c, const struct column_diff_row *row)
{
	const struct column_diff_sum *sum = sum_of(c, row);
	bool sure = !c->input->traces.unsure && column_diff_is_sure(sum, c->compared.threshold);
	const int name_at = screen_is_narrow(c->screen) ? NAME_AT_NARROW : NAME_AT;
	enum screen_style style = !sure ? SCREEN_PLAIN : sum->after > sum->before ? SCREEN_MORE : SCREEN_LESS;

	fputs(screen_style(c->screen, style), c->screen->out);
	print_sum(c, sum);
	fprintf(c->screen->out, " %c %-4s ", sure ? '*' : ' ',
	    sum->before == 0      ? "new"
	        : sum->after == 0 ? "gone"
	                          : "");
	if (c->read->cum)
		report_frame(c->screen, &c->input->traces, row->frame, screen_room(c->screen, name_at));
	else
		report_frame_callers(c->screen, &c->input->traces, c->changes, row->frame, name_at);
	fprintf(c->screen->out, "%s\n", screen_style(c->screen, SCREEN_PLAIN));
}

static void print_name(const struct comparing *c, const char *what, size_t column)
{
	const struct origin *origin = &c->input->origins[column];
	const struct process_set *set = &c->input->sets[column];
	FILE *out = c->screen->out;
	char text[512];
	int at;

	fprintf(out, "%s%-4s%s  ", screen_style(c->screen, SCREEN_HEAD), what,
	    screen_style(c->screen, SCREEN_PLAIN));
	if (set->process_count > 1) {
		screen_text(
		    c->screen, process_set_describe(set, text, sizeof(text)), screen_room(c->screen, 6));
		putc('\n', out);
		return;
	}
	at = 6 +
	    screen_text(
	        c->screen, *origin->name ? origin->name : "unknown program", screen_room(c->screen, 6));
	if (origin->pid)
		at += fprintf(out, "  pid %d", (int)origin->pid);
	if (*origin->cause) {
		fputs("  ", out);
		screen_text(c->screen, origin->cause, screen_room(c->screen, at + 2));
	}
	putc('\n', out);
}

static const char *row_word(const struct comparing *c)
{
	return c->read->by == GROUP_FUNCTION ? "function" : report_columns(c->read);
}

/* Says of an empty table what is the same, and what differs although the table does not show it. */
static void describe_no_change(const struct comparing *c, char *line, size_t line_bytes)
{
	const struct traces *t = &c->input->traces;
	const char *what = row_word(c);
	enum measure_kind other = 0;

	while (other < MEASURE_COUNT && !traces_differ(t, 0, 1, other))
		other++;
	if (c->compared.scale != 1)
		snprintf(
		    line, line_bytes, "Only the total has changed: every %s has the same share of it.", what);
	else if (traces_differ(t, 0, 1, c->kind))
		snprintf(line, line_bytes, "No %s has changed as a whole: %s.", what,
		    c->read->by != GROUP_FUNCTION ? "without --by, functions have changed"
		                                  : "callers have changed, which --cum shows");
	else if (other < MEASURE_COUNT)
		snprintf(line, line_bytes,
		    "These values have not changed in any %s, but others have: --sort %s shows them.", what,
		    traces_kind_word(other));
	else
		snprintf(
		    line, line_bytes, "Nothing changed: every %s has the same values in BASE and NEW.", what);
}

static bool has_ended(const struct comparing *c, size_t column)
{
	const struct process_set *set = &c->input->sets[column];

	return set->ended == set->file_count && !set->detached;
}

/* The answer to what changed. Rows in JSON have other names than rows for people, but the sentence is the
 * same. 0 or -ENOMEM. */
static int answer_change(const struct comparing *c, struct answer *answer)
{
	const struct traces *t = profile_input_tables(c->input);
	const struct column_diff_options options = {
	    .after = 1, .kind = c->kind, .same_process = c->same_process, .order = TOTALS_BY_FLAT};
	struct column_diff compared;
	char line[2];

	*answer = (struct answer){.held_function = "", .grows_function = ""};
	if (c->read->normalize || nothing_matches(t, c->read, line, sizeof(line)))
		return 0;
	if (column_diff_make(&compared, t, &options))
		return -ENOMEM;
	change_text(answer->grows, &answer->grows_function, t, c->kind, &compared);
	if (c->kind == MEASURE_INUSE && c->read->state == READ_NEWEST && has_ended(c, 0) && has_ended(c, 1) &&
	    !column_diff_is_sure(&compared.sum, estimate_threshold(1)))
		text_append(answer->grows, ANSWER_BYTES,
		    " These are the ends of the programs: --state peak compares their peaks.");
	column_diff_fini(&compared);
	return 0;
}

/* Says what the marks mean, or that there are none. */
static void describe_chance(const struct comparing *c, char *line, size_t line_bytes)
{
	const struct column_diff *compared = &c->compared;
	size_t sure = 0;
	char rows[48] = "one row";

	if (compared->count > 1)
		snprintf(rows, sizeof(rows), "all %zu rows together", compared->count);
	for (size_t i = 0; i < compared->count; i++)
		sure += column_diff_is_sure(sum_of(c, &compared->rows[i]), compared->threshold);
	if (nothing_matches(&c->input->traces, c->read, line, line_bytes))
		return;
	if (!compared->count)
		describe_no_change(c, line, line_bytes);
	else if (c->kind == MEASURE_OTHER)
		snprintf(line, line_bytes, "Not a heap profile: no standard errors are given.");
	else if (c->input->traces.unsure)
		snprintf(line, line_bytes,
		    "No sampling period in the profiles: changes cannot be told from chance.");
	else
		snprintf(line, line_bytes, "%s%s%s (5%% for %s: %.1f standard errors). %s",
		    sure ? "* more than chance" : "No ", sure ? "" : row_word(c),
		    sure ? "" : " changed by more than chance", rows, compared->threshold,
		    c->same_process
		        ? "Both are of one process: samples in both cancel out."
		        : "Two runs: what the programs did differently is not chance and shows too.");
}

static void print_text(const struct comparing *c, const struct answer *answer)
{
	size_t most = c->read->rows ? (size_t)c->read->rows : ROWS_DEFAULT;
	const char *what = report_kind(&c->input->traces, c->kind);
	char line[512];

	if (*answer->grows) {
		screen_lines(c->screen, 0, answer->grows);
		putc('\n', c->screen->out);
	}
	print_name(c, "base", 0);
	print_name(c, "new", 1);
	fprintf(c->screen->out, "\n%s%s%s%s%s\n", screen_style(c->screen, SCREEN_HEAD), what,
	    c->read->cum ? ", cum" : ", flat", c->read->normalize ? ", new scaled to base" : "",
	    screen_style(c->screen, SCREEN_PLAIN));
	fprintf(c->screen->out, "%10s %9s", "change", "error");
	if (!screen_is_narrow(c->screen))
		fprintf(c->screen->out, " %10s", "base");
	fprintf(c->screen->out, " %10s        %s\n", "new", report_columns(c->read));
	print_sum(c, &c->compared.sum);
	fprintf(c->screen->out, " %c      (total)\n",
	    !c->input->traces.unsure && column_diff_is_sure(&c->compared.sum, estimate_threshold(1)) ? '*'
	                                                                                             : ' ');
	for (size_t i = 0; i < c->compared.count && i < most; i++)
		print_row(c, &c->compared.rows[i]);
	if (c->compared.count > most)
		fprintf(c->screen->out, "%10s %zu more (-n all)\n", "...", c->compared.count - most);
	putc('\n', c->screen->out);
	describe_chance(c, line, sizeof(line));
	screen_lines(c->screen, 0, line);
}

static void write_sum(struct json *json, const struct comparing *c, const char *key,
    const struct column_diff_sum *sum, double threshold)
{
	json_object(json, key);
	json_number(json, "base", sum->before, 0);
	json_number(json, "new", sum->after, 0);
	json_number(json, "change", sum->after - sum->before, 0);
	if (!c->input->traces.unsure && c->kind != MEASURE_OTHER) {
		json_number(json, "error", sqrt(sum->variance), 1);
		json_number(json, "samples", sum->samples, 1);
		json_boolean(json, "beyond_chance", column_diff_is_sure(sum, threshold));
	}
	json_end(json);
}

static void print_json(const struct comparing *c, const struct answer *answer)
{
	struct json json = {.out = c->screen->out};
	const struct traces *t = &c->input->traces;

	json_object(&json, NULL);
	json_text(&json, "heaptap", HEAPTAP_VERSION);
	answer_json(&json, answer);
	json_text(
	    &json, "type", c->kind == MEASURE_OTHER ? t->types[t->default_type] : traces_kind_word(c->kind));
	json_text(&json, "unit", traces_unit(t, c->kind));
	json_boolean(&json, "same_process", c->same_process);
	json_boolean(&json, "normalized", c->read->normalize);
	json_number(&json, "threshold", c->compared.threshold, 3);
	write_sum(&json, c, "total", &c->compared.sum, estimate_threshold(1));
	json_array(&json, "functions");
	for (size_t i = 0; i < c->compared.count && (!c->read->rows || i < (size_t)c->read->rows); i++) {
		const struct column_diff_row *row = &c->compared.rows[i];
		const struct frames_row *frame = &t->frames.rows[row->frame];

		json_object(&json, NULL);
		json_text(&json, "name", frame->name);
		json_text(&json, "file", frame->file);
		if (frame->line > 0)
			json_integer(&json, "line", frame->line);
		write_sum(&json, c, "flat", &row->flat, c->compared.threshold);
		write_sum(&json, c, "cum", &row->cum, c->compared.threshold);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

/* --fail-over is about bytes in use, whatever is shown. */
static int check_limit(const struct comparing *c)
{
	const struct traces *t = &c->input->traces;
	char text[2][AMOUNT_BYTES];
	double grown = 0;

	for (size_t row = 0; row < t->row_count; row++)
		grown += (double)traces_value(t, row, 1, MEASURE_INUSE) * c->compared.scale -
		    (double)traces_value(t, row, 0, MEASURE_INUSE);
	if (grown <= (double)c->read->fail_over_bytes)
		return 0;
	log_line("grown by %s, more than the %s of --fail-over", amount_bytes(grown, text[0]),
	    amount_bytes((double)c->read->fail_over_bytes, text[1]));
	return STATUS_FAIL_OVER;
}

static int compare(struct comparing *c)
{
	struct column_diff_options options = {
	    .after = 1,
	    .kind = c->kind,
	    .same_process = c->same_process,
	    .normalize = c->read->normalize,
	    .order = c->read->cum ? TOTALS_BY_CUM : TOTALS_BY_FLAT,
	};
	struct answer answer;
	int status;

	if (answer_change(c, &answer)) {
		log_line("not enough memory");
		return 1;
	}
	c->changes = calloc((size_t)c->input->traces.row_count + 1, sizeof(*c->changes));
	if (!c->changes || column_diff_make(&c->compared, &c->input->traces, &options)) {
		free(c->changes);
		log_line("not enough memory");
		return 1;
	}
	for (size_t row = 0; row < c->input->traces.row_count; row++)
		c->changes[row] =
		    (double)traces_value(&c->input->traces, row, 1, c->kind) * c->compared.scale -
		    (double)traces_value(&c->input->traces, row, 0, c->kind);
	if (c->read->json)
		print_json(c, &answer);
	else
		print_text(c, &answer);
	status = check_limit(c);
	column_diff_fini(&c->compared);
	free(c->changes);
	return status;
}

int diff_run(struct options *options)
{
	struct profile_input input;
	struct screen screen;
	struct comparing c = {.screen = &screen, .input = &input, .read = &options->read};
	size_t column;
	int status;

	if (options->operand_count > 2 || options->read.sort == SORT_PEAK) {
		log_line(options->operand_count > 2
		        ? "diff takes two profiles or folders: heaptap diff [OPTIONS] BASE NEW"
		        : "diff has no --sort peak: --state peak compares the peaks");
		return STATUS_USAGE;
	}
	status = profile_input_open_columns(&input, options);
	if (!status)
		status = profile_input_kind(&input, options->read.sort, &c.kind, &column);
	if (!status &&
	    screen_open(&screen, options->output, !options->read.no_pager, options->read.memory_max_bytes) ==
	        0) {
		c.same_process = origin_same_process(&input.origins[0], &input.origins[1]) &&
		    input.sets[0].process_count == 1 && input.sets[1].process_count == 1 &&
		    input.origins[0].kind == ORIGIN_LIVE && input.origins[1].kind == ORIGIN_LIVE &&
		    input.origins[0].time_ns <= input.origins[1].time_ns;
		status = screen_close(&screen, compare(&c));
	}
	profile_input_close(&input);
	return status;
}
