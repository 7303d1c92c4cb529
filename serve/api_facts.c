/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_facts.h"

#include "pprof/analysis/row_label.h"
#include "pprof/export/answer.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One profile with the label is enough: a process that has freed everything has no ages. */
static int check_labels(
    const struct api_query *query, const struct api_input *input, char *error, size_t error_bytes)
{
	const char *missing = NULL;

	for (size_t i = 0; i < input->count; i++) {
		missing = filter_missing_label(&query->filter, input->profiles[i].profile);
		if (!missing)
			missing = grouping_missing_label(query->by, input->profiles[i].profile);
		if (!missing)
			return 0;
	}
	if (!missing)
		return 0;
	snprintf(error, error_bytes, "no sample has the label %s; record with --labels %s", missing, missing);
	return -EINVAL;
}

static void describe(struct api_facts *facts, const struct api_input *input)
{
	for (size_t i = 0; i < input->count; i++) {
		const size_t column = input->profiles[i].column;
		struct origin origin;

		if (input->profiles[i].ended)
			continue;
		origin_read(&origin, input->profiles[i].profile);
		if (!facts->process_counts[column])
			facts->ended[column] = true;
		else if (strcmp(origin.program, facts->origins[column].program) != 0)
			facts->is_mixed = true;
		facts->ended[column] = facts->ended[column] && strncmp(origin.cause, "exit", 4) == 0;
		if (origin.rss_bytes < 0 || facts->rss_bytes[column] < 0)
			facts->rss_bytes[column] = -1;
		else
			traces_sum(&facts->rss_bytes[column], origin.rss_bytes);
		facts->gaps |= origin.gaps;
		if (!facts->process_counts[column]++ || origin.time_ns > facts->origins[column].time_ns)
			facts->origins[column] = origin;
	}
}

/* Are the profiles of each owner states of one process, by time? */
static int check_series(struct api_facts *facts, const struct api_input *input)
{
	struct origin *last = calloc(input->count, sizeof(*last)), origin;
	bool *has_last = calloc(input->count, sizeof(*has_last));

	facts->is_series = last && has_last;
	for (size_t i = 0; i < input->count && facts->is_series; i++) {
		const size_t owner = input->profiles[i].owner;

		origin_read(&origin, input->profiles[i].profile);
		facts->is_series = !has_last[owner] ||
		    (origin_same_process(&last[owner], &origin) && last[owner].time_ns <= origin.time_ns);
		last[owner] = origin;
		has_last[owner] = true;
	}
	const bool failed = !last || !has_last;
	free(last);
	free(has_last);
	return failed ? -ENOMEM : 0;
}

static int fill(struct api_facts *facts, const struct api_input *input, char *error, size_t error_bytes)
{
	int err = 0;

	for (size_t i = 0; i < input->count && !err; i++)
		err = traces_expect(&facts->traces, input->profiles[i].profile, input->profiles[i].column);
	for (size_t i = 0; i < input->count && !err; i++)
		err = input->profiles[i].ended
		    ? traces_add_ended(&facts->traces, input->profiles[i].profile, input->profiles[i].column)
		    : traces_add(&facts->traces, input->profiles[i].profile, input->profiles[i].column);
	if (err == -ENODATA)
		snprintf(error, error_bytes, "the profiles have no sample type in common");
	return err ? err : traces_finish(&facts->traces);
}

static int choose_kind(struct api_facts *facts, char *error, size_t error_bytes)
{
	facts->kind = facts->query->sorted ? facts->query->kind : traces_default_kind(&facts->traces);
	if (traces_has(&facts->traces, facts->kind))
		return 0;
	snprintf(error, error_bytes, "sort: these profiles have no such values: %s",
	    traces_kind_word(facts->kind));
	return -ENODATA;
}

static void say_memory(int err, size_t max_bytes, char *error, size_t error_bytes)
{
	if (err == -EFBIG)
		snprintf(error, error_bytes, "this takes more than %zu bytes of memory", max_bytes);
	else if (err == -ENOMEM || err == -EOVERFLOW)
		snprintf(error, error_bytes, "not enough memory");
}

/* The name in the newest column that has a profile. */
static const char *name_of(const struct api_facts *facts, size_t column_count)
{
	while (column_count > 1 && !facts->process_counts[column_count - 1])
		column_count--;
	return facts->origins[column_count - 1].name;
}

int api_facts_make(struct api_facts *facts, const struct api_query *query, const struct api_input *input,
    const struct api_shape *shape, char *error, size_t error_bytes)
{
	const struct traces_options options = {
	    .lines = query->lines,
	    .names = query->full_names ? FRAMES_FULL : shape->names,
	    .by = query->by,
	    .fold = shape->fold && !query->all_frames,
	    .split = shape->split,
	    .filter = &query->filter,
	    .max_bytes = query->max_bytes,
	};
	int err;

	memset(facts, 0, sizeof(*facts));
	facts->query = query;
	facts->origins = calloc(input->column_count, sizeof(*facts->origins));
	facts->process_counts = calloc(input->column_count, sizeof(*facts->process_counts));
	facts->ended = calloc(input->column_count, sizeof(*facts->ended));
	facts->rss_bytes = calloc(input->column_count, sizeof(*facts->rss_bytes));
	if (!facts->origins || !facts->process_counts || !facts->ended || !facts->rss_bytes)
		return -ENOMEM;
	describe(facts, input);
	if (input->column_count > 1 && check_series(facts, input))
		return -ENOMEM;
	facts->title = *input->title ? input->title : name_of(facts, input->column_count);
	err = check_labels(query, input, error, error_bytes);
	if (!err)
		err = traces_init(&facts->traces, &options, input->profiles[0].profile, input->column_count);
	if (!err)
		err = fill(facts, input, error, error_bytes);
	if (!err && shape->headings && !query->all_frames)
		err = row_label_choose(&facts->traces);
	if (!err)
		err = choose_kind(facts, error, error_bytes);
	say_memory(err, query->max_bytes, error, error_bytes);
	return err;
}

void api_facts_fini(struct api_facts *facts)
{
	traces_fini(&facts->traces);
	free(facts->origins);
	free(facts->process_counts);
	free(facts->ended);
	free(facts->rss_bytes);
	memset(facts, 0, sizeof(*facts));
}

struct origin api_facts_origin(const struct api_facts *facts, size_t column)
{
	struct origin origin = facts->origins[column];

	if (facts->process_counts[column] != 1) {
		origin.pid = 0;
		origin.cause[0] = '\0';
	}
	return origin;
}

const char *api_facts_several(const struct api_facts *facts, size_t column, char *text, size_t text_bytes)
{
	const size_t count = facts->process_counts[column];

	if (facts->is_mixed)
		snprintf(text, text_bytes, "%zu processes of %s", count, facts->title);
	else
		snprintf(text, text_bytes, "%zu processes: %s (%zu)", count, facts->origins[column].program,
		    count);
	return text;
}

bool api_facts_same_process(const struct api_facts *facts, size_t first, size_t second)
{
	const struct origin *a = &facts->origins[first], *b = &facts->origins[second];

	if (facts->process_counts[first] > 1 || facts->process_counts[second] > 1)
		return facts->is_series;
	return facts->process_counts[first] == 1 && facts->process_counts[second] == 1 &&
	    origin_same_process(a, b) && a->kind == ORIGIN_LIVE && b->kind == ORIGIN_LIVE &&
	    a->time_ns <= b->time_ns;
}

/* ---- as JSON */

int api_facts_answer(
    struct json *json, const struct api_facts *facts, size_t column, const struct growth *growth)
{
	const size_t count = facts->traces.column_count;
	int64_t *times_ns = calloc(count + 1, sizeof(*times_ns));
	const bool has_peak = !growth && count > 1 && facts->process_counts[1] == facts->process_counts[0];
	const struct answer_facts about = {
	    .traces = &facts->traces,
	    .column = column,
	    .is_peak = facts->origins[column].kind == ORIGIN_PEAK,
	    .has_ended = facts->ended[column],
	    .is_attached = (facts->gaps & ORIGIN_GAP_ATTACHED) != 0,
	    .has_peak = has_peak,
	    .peak = 1,
	    .growth = growth,
	    .point_count = count,
	    .times_ns = times_ns,
	    .rss_bytes = facts->rss_bytes,
	    .unseen = facts->origins[column].unseen,
	    .origin = &facts->origins[column],
	};
	struct answer answer;
	int err = times_ns ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		times_ns[i] = facts->origins[i].time_ns;
	if (!err)
		err = answer_make(&answer, &about);
	if (!err)
		answer_json(json, &answer);
	free(times_ns);
	return err;
}

void api_facts_head(struct json *json, const struct api_facts *facts, size_t column)
{
	const struct origin *origin = &facts->origins[column];
	const bool one = facts->process_counts[column] == 1;

	json_text(json, "heaptap", HEAPTAP_VERSION);
	json_text(json, "title", facts->title);
	json_text(json, "program", origin->program);
	json_text(json, "name", origin->name);
	json_integer(json, "pid", one ? origin->pid : 0);
	json_text(json, "host", origin->host);
	json_integer(json, "time_ns", origin->time_ns);
	json_integer(json, "duration_ns", origin->duration_ns);
	json_text(json, "cause", one ? origin->cause : "");
	json_text(json, "samples", one ? origin->samples : "");
	json_text(json, "not_seen", origin->unseen);
	json_integer(json, "period", origin->period);
	json_text(json, "period_unit", origin->period_unit);
	json_integer(json, "profiles", (int64_t)facts->process_counts[column]);
	json_boolean(json, "running", origin->ours && !facts->ended[column]);
	json_boolean(json, "errors_are_upper_limits", facts->traces.is_bound);
}

static const char *kind_word(const struct traces *t, enum measure_kind kind)
{
	return kind == MEASURE_OTHER ? t->types[t->kinds[MEASURE_OTHER]] : traces_kind_word(kind);
}

void api_facts_kind(struct json *json, const struct api_facts *facts)
{
	const struct traces *t = &facts->traces;

	json_text(json, "type", kind_word(t, facts->kind));
	json_text(json, "unit", traces_unit(t, facts->kind));
	json_array(json, "types");
	for (int kind = 0; kind < MEASURE_COUNT; kind++)
		if (traces_has(t, (enum measure_kind)kind))
			json_text(json, NULL, kind_word(t, (enum measure_kind)kind));
	json_end(json);
}

bool api_facts_known(const struct api_facts *facts)
{
	return !facts->traces.unsure && facts->kind != MEASURE_OTHER;
}

void api_facts_sum(struct json *json, const struct api_facts *facts, const char *name, double value,
    struct traces_doubt doubt)
{
	const char *prefix = strcmp(name, "flat") == 0 || strcmp(name, "value") == 0 ? "" : name;
	char key[48];

	json_number(json, name, value, 0);
	if (!api_facts_known(facts))
		return;
	snprintf(key, sizeof(key), "%s%serror", prefix, *prefix ? "_" : "");
	json_number(json, key, sqrt(fmax(doubt.variance, 0)), 1);
	snprintf(key, sizeof(key), "%s%ssamples", prefix, *prefix ? "_" : "");
	json_number(json, key, doubt.samples, 1);
}

/* ---- one point */

int api_facts_point(struct api_point *point, struct profile *profile, const struct api_query *query)
{
	static const struct api_shape shape = {FRAMES_FULL, false, false, false};
	const struct api_input_profile only = {.profile = profile};
	const struct api_input input = {.profiles = &only, .count = 1, .column_count = 1, .title = ""};
	struct api_facts facts;
	char error[256];
	int err = api_facts_make(&facts, query, &input, &shape, error, sizeof(error));

	memset(point, 0, sizeof(*point));
	if (!err) {
		const struct traces_doubt doubt = traces_doubt_selected(&facts.traces, 0, facts.kind);

		point->time_ns = facts.origins[0].time_ns;
		point->allocated = traces_has(&facts.traces, MEASURE_ALLOC) ? 0 : NAN;
		for (size_t row = 0; row < facts.traces.row_count; row++) {
			point->value += (double)traces_value(&facts.traces, row, 0, facts.kind);
			if (!isnan(point->allocated))
				point->allocated +=
				    (double)traces_value(&facts.traces, row, 0, MEASURE_ALLOC);
		}
		point->error = sqrt(fmax(doubt.variance, 0));
		point->samples = doubt.samples;
		point->known = api_facts_known(&facts);
		point->rss_bytes = facts.origins[0].rss_bytes;
		snprintf(point->cause, sizeof(point->cause), "%.95s", facts.origins[0].cause);
		point->cause[utf8_valid_prefix(point->cause, strlen(point->cause))] =
		    '\0'; /* it may be cut */
	}
	api_facts_fini(&facts);
	return err;
}
