/* SPDX-License-Identifier: Apache-2.0 */
/* The report as JSON: everything that the text has, unrounded, and for every function. */
#include "sampler/cmd/report/report.h"

#include "pprof/analysis/totals.h"
#include "pprof/export/traces_json.h"
#include "pprof/text/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_written(const struct traces *t, int kind)
{
	return traces_has(t, (enum measure_kind)kind) && kind != MEASURE_FREED;
}

void report_json_head(
    struct json *json, const struct profile_input *input, const struct report_answer *answer, size_t column)
{
	const struct origin *origin = &input->origins[column];

	static const char *const states[] = {
	    [READ_NEWEST] = "newest", [READ_PEAK] = "peak", [READ_DELTA] = "delta", [READ_ALL] = "all"};
	const struct process_set *set = &input->sets[column];

	json_object(json, NULL);
	json_text(json, "heaptap", HEAPTAP_VERSION);
	answer_json(json, &answer->answer);
	json_text(json, "program", set->process_count > 1 ? set->programs : origin->program);
	json_text(json, "name", set->process_count > 1 ? set->programs : origin->name);
	json_integer(json, "pid", set->process_count > 1 ? 0 : origin->pid);
	json_text(json, "host", origin->host);
	json_integer(json, "time_ns", origin->time_ns);
	json_integer(json, "duration_ns", origin->duration_ns);
	json_text(json, "cause", origin->cause);
	json_text(json, "samples", set->samples);
	json_text(json, "not_seen", origin->unseen);
	if (*origin->attached)
		json_text(json, "attached", origin->attached);
	json_integer(json, "period", origin->period);
	json_text(json, "period_unit", origin->period_unit);
	json_integer(json, "profiles", (int64_t)input->file_count);
	json_integer(json, "unread", (int64_t)input->unread_count);
	json_integer(json, "snapshots", (int64_t)input->series_count);
	json_integer(json, "processes", (int64_t)set->process_count);
	json_integer(json, "inherited_bytes", set->inherited_bytes);
	json_boolean(json, "errors_are_upper_limits", input->traces.is_bound);
	json_text(json, "state", states[input->state]);
	json_integer(json, "session", (int64_t)input->session);
	json_integer(json, "sessions", (int64_t)input->session_count);
}

/* name, name_error, name_samples */
static void write_sum(
    struct json *json, const struct traces *t, int kind, const char *name, const struct totals_sum *sum)
{
	char key[32];

	json_integer(json, name, sum->value);
	if (t->unsure || kind == MEASURE_OTHER)
		return;
	snprintf(key, sizeof(key), "%s_error", name);
	json_number(json, key, sqrt(sum->variance), 1);
	snprintf(key, sizeof(key), "%s_samples", name);
	json_number(json, key, sum->samples, 1);
}

static void write_totals(struct json *json, const struct traces *t, size_t column, const struct totals *all)
{
	json_object(json, "totals");
	for (int kind = 0; kind < MEASURE_COUNT; kind++) {
		if (!is_written(t, kind))
			continue;
		const struct traces_doubt doubt = traces_doubt_all(t, column, (enum measure_kind)kind);
		const struct totals_sum whole = {
		    traces_all(t, column, (enum measure_kind)kind), doubt.samples, doubt.variance};

		json_object(json, t->types[t->kinds[kind]]);
		json_text(json, "unit", traces_unit(t, (enum measure_kind)kind));
		write_sum(json, t, kind, "all", &whole);
		write_sum(json, t, kind, "selected", &all[kind].sum);
		json_end(json);
	}
	json_end(json);
}

static void write_function(
    struct json *json, const struct traces *t, const struct totals *all, uint32_t number)
{
	traces_json_frame(json, t, number);
	for (int kind = 0; kind < MEASURE_COUNT; kind++) {
		if (!is_written(t, kind))
			continue;
		json_object(json, t->types[t->kinds[kind]]);
		write_sum(json, t, kind, "flat", &all[kind].rows[number].flat);
		write_sum(json, t, kind, "cum", &all[kind].rows[number].cum);
		json_end(json);
	}
	json_end(json);
}

/* -n is respected; without it everything is written. */
static void write_report(FILE *out, const struct profile_input *input, const struct report_answer *answer,
    const struct read_options *read, size_t column, const struct totals *all, const struct totals *order)
{
	struct json json = {.out = out};

	report_json_head(&json, input, answer, column);
	write_totals(&json, &input->traces, column, all);
	json_array(&json, "functions");
	for (size_t i = 0; i < order->count && (!read->rows || i < (size_t)read->rows); i++)
		write_function(&json, &input->traces, all, order->rows[i].frame);
	json_end(&json);
	report_json_growth(&json, input, answer);
	json_end(&json);
}

int report_json(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct read_options *read)
{
	const struct traces *t = &input->traces;
	struct totals all[MEASURE_COUNT] = {0}, order = {0};
	enum measure_kind kind;
	size_t column;
	int err = profile_input_kind(input, read->sort, &kind, &column);

	if (err)
		return 1;
	for (int i = 0; i < MEASURE_COUNT && !err; i++)
		if (is_written(t, i))
			err = totals_make(&all[i], t, column, (enum measure_kind)i);
	if (!err)
		err = totals_make(&order, t, column, kind);
	if (!err) {
		totals_sort(&order, t, read->cum ? TOTALS_BY_CUM : TOTALS_BY_FLAT);
		write_report(screen->out, input, answer, read, column, all, &order);
	}
	if (err)
		profile_input_say_memory(read, err);
	for (int i = 0; i < MEASURE_COUNT; i++)
		totals_fini(&all[i]);
	totals_fini(&order);
	return err ? 1 : 0;
}
