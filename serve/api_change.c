/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_change.h"

#include "pprof/analysis/contrast.h"
#include "pprof/analysis/growth.h"
#include "pprof/export/graph.h"
#include "pprof/export/stack_json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NS_PER_HOUR 3.6e12

/* ---- diff */

static bool is_sure(const struct contrast_sum *sum)
{
	return contrast_is_sure(sum, API_CHANCE_ERRORS);
}

/* prefix "" for flat: "flat" is the change, with "error", "base", "new"; "cum_" likewise. `beyond_chance`
 * is for all rows together, `within_two_errors` for the row by itself. */
static void write_change(struct json *json, const struct api_facts *facts, const char *name,
    const char *prefix, const struct contrast_sum *sum, double threshold)
{
	char key[48];
	const char *mark = sum->before == 0 && sum->after != 0 ? "new"
	    : sum->after == 0 && sum->before != 0              ? "gone"
	                                                       : "";

#define KEY(word) (snprintf(key, sizeof(key), "%s%s", prefix, word), key)
	json_number(json, name, sum->after - sum->before, 0);
	json_number(json, KEY("base"), sum->before, 0);
	json_number(json, KEY("new"), sum->after, 0);
	json_text(json, KEY("mark"), mark);
	if (!api_facts_known(facts))
		return;
	json_number(json, KEY("error"), sqrt(fmax(sum->variance, 0)), 1);
	json_number(json, KEY("samples"), sum->samples, 1);
	json_boolean(json, KEY("within_two_errors"), !is_sure(sum));
	json_boolean(json, KEY("beyond_chance"), contrast_is_sure(sum, threshold));
#undef KEY
}

int api_change_diff(struct json *json, const struct api_facts *facts)
{
	const struct traces *t = &facts->traces;
	const struct contrast_options options = {
	    .after = 1,
	    .kind = facts->kind,
	    .same_process = api_facts_same_process(facts, 0, 1),
	    .normalize = facts->query->normalize,
	    .order = facts->query->cum ? TOTALS_BY_CUM : TOTALS_BY_FLAT,
	};
	struct contrast contrast;
	size_t shown;

	if (contrast_make(&contrast, t, &options))
		return -ENOMEM;
	shown =
	    facts->query->rows && facts->query->rows < contrast.count ? facts->query->rows : contrast.count;
	for (size_t column = 0; column < 2; column++) {
		json_object(json, column ? "new" : "base");
		api_facts_head(json, facts, column);
		json_end(json);
	}
	api_facts_kind(json, facts);
	json_boolean(json, "same_process", options.same_process);
	json_boolean(json, "normalized", options.normalize);
	json_number(json, "threshold", contrast.threshold, 3);
	json_object(json, "total");
	write_change(json, facts, "change", "", &contrast.sum, estimate_threshold(1));
	json_end(json);
	json_array(json, "rows");
	for (size_t i = 0; i < shown; i++) {
		stack_json_frame(json, t, contrast.rows[i].frame);
		write_change(json, facts, "flat", "", &contrast.rows[i].flat, contrast.threshold);
		write_change(json, facts, "cum", "cum_", &contrast.rows[i].cum, contrast.threshold);
		json_end(json);
	}
	json_end(json);
	json_integer(json, "left_out", (int64_t)(contrast.count - shown));
	contrast_fini(&contrast);
	return 0;
}

int api_change_columns(struct json *json, const struct api_facts *facts)
{
	const struct graph_choice choice = {
	    .title = facts->title,
	    .origin = &facts->origins[1],
	    .samples = facts->process_counts[1] == 1 ? facts->origins[1].samples : "",
	    .ended = facts->ended[1],
	    .column = 1,
	    .base = 0,
	    .base_origin = &facts->origins[0],
	    .kind = facts->kind,
	    .same_process = api_facts_same_process(facts, 0, 1),
	    .normalize = facts->query->normalize,
	};

	return graph_write(json, &facts->traces, &choice);
}

/* ---- growth */

/* Of everything that is selected, from the first column to the last. */
static int growth_sum(const struct api_facts *facts, size_t last, struct contrast_sum *sum)
{
	const struct contrast_options options = {
	    .after = last, .kind = MEASURE_INUSE, .same_process = facts->is_series};
	struct contrast contrast;

	if (contrast_make(&contrast, &facts->traces, &options))
		return -ENOMEM;
	*sum = contrast.sum;
	contrast_fini(&contrast);
	return 0;
}

static double hours_between(const struct api_facts *facts, size_t last)
{
	return ((double)facts->origins[last].time_ns - (double)facts->origins[0].time_ns) / NS_PER_HOUR;
}

static void write_growth_row(
    struct json *json, const struct api_facts *facts, const struct growth_row *row, double hours)
{
	const struct traces *t = &facts->traces;
	const struct traces_row *at = &t->rows[row->row];
	const double change = row->last - row->first;

	json_object(json, NULL);
	json_text(json, "name", at->depth ? t->frames.rows[traces_stack(t, row->row)[at->head]].name : "");
	json_number(json, "change", change, 0);
	json_number(json, "error", sqrt(fmax(row->variance, 0)), 1);
	json_number(json, "samples", row->samples, 1);
	json_number(json, "first", row->first, 0);
	json_number(json, "last", row->last, 0);
	json_number(json, "per_hour", hours > 0 ? change / hours : NAN, 0);
	stack_json(json, t, row->row);
	json_end(json);
}

static int write_growth_total(struct json *json, const struct api_facts *facts, size_t last, double hours)
{
	struct contrast_sum sum;
	int err = growth_sum(facts, last, &sum);

	if (err)
		return err;
	json_object(json, "total");
	json_number(json, "first", sum.before, 0);
	json_number(json, "last", sum.after, 0);
	json_number(json, "change", sum.after - sum.before, 0);
	json_number(json, "error", sqrt(fmax(sum.variance, 0)), 1);
	json_number(json, "per_hour", hours > 0 ? (sum.after - sum.before) / hours : NAN, 0);
	json_boolean(json, "beyond_chance", is_sure(&sum));
	json_end(json);
	return 0;
}

int api_change_growth(struct json *json, const struct api_facts *facts)
{
	const size_t count = facts->traces.column_count, last = count - 1;
	const double hours = hours_between(facts, last);
	struct growth growth = {0};
	const bool is_series = facts->is_series && facts->process_counts[0];
	size_t shown = 0;
	int err = 0;

	if (is_series)
		err = growth_make(&growth, &facts->traces, count);
	if (err)
		return err;
	api_facts_head(json, facts, last);
	json_integer(json, "snapshots", (int64_t)count);
	json_boolean(json, "one_process", is_series && facts->process_counts[last] == 1);
	json_integer(json, "series_ns", facts->origins[last].time_ns - facts->origins[0].time_ns);
	json_integer(
	    json, "began_since", (int64_t)facts->process_counts[last] - (int64_t)facts->process_counts[0]);
	json_number(json, "threshold", growth.threshold, 3);
	if (is_series && count >= GROWTH_LEAST_COLUMNS && !facts->traces.unsure)
		err = write_growth_total(json, facts, last, hours);
	shown = facts->query->rows && facts->query->rows < growth.count ? facts->query->rows : growth.count;
	json_array(json, "rows");
	for (size_t i = 0; i < shown; i++)
		write_growth_row(json, facts, &growth.rows[i], hours);
	json_end(json);
	json_integer(json, "left_out", (int64_t)(growth.count - shown));
	growth_fini(&growth);
	return err;
}

int api_growth_between(struct api_growth *growth, struct profile *first, struct profile *last)
{
	struct profile *const profiles[] = {first, last};
	static const size_t columns[] = {0, 1};
	static const struct api_query plain;
	static const struct api_shape shape = {FRAMES_FULL, false, false, false};
	const struct api_input input = {profiles, columns, 2, 2, "", NULL};
	struct contrast_sum sum = {0};
	struct api_facts facts;
	char error[256];
	double hours = 0;
	int err = api_facts_make(&facts, &plain, &input, &shape, error, sizeof(error));

	memset(growth, 0, sizeof(*growth));
	if (!err)
		hours = hours_between(&facts, 1);
	if (!err && (!traces_has(&facts.traces, MEASURE_INUSE) || facts.traces.unsure))
		err = -ENODATA;
	if (!err && (!api_facts_same_process(&facts, 0, 1) || hours <= 0))
		err = -EINVAL;
	if (!err)
		err = growth_sum(&facts, 1, &sum);
	if (!err) {
		growth->change = sum.after - sum.before;
		growth->error = sqrt(fmax(sum.variance, 0));
		growth->per_hour = growth->change / hours;
		growth->per_hour_error = growth->error / hours;
		growth->beyond_chance = is_sure(&sum);
	}
	api_facts_fini(&facts);
	return err;
}
