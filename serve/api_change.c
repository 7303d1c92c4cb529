/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_change.h"

#include "pprof/analysis/contrast.h"
#include "pprof/analysis/growth.h"
#include "pprof/export/graph.h"
#include "pprof/export/growth_json.h"
#include "pprof/export/stack_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	const struct origin base_origin = api_facts_origin(facts, 0), origin = api_facts_origin(facts, 1);
	char several[320];
	const struct graph_choice choice = {
	    .title = facts->process_counts[1] == 1 ? facts->title
	                                           : api_facts_several(facts, 1, several, sizeof(several)),
	    .origin = &origin,
	    .samples = facts->process_counts[1] == 1 ? facts->origins[1].samples : "",
	    .ended = facts->ended[1],
	    .column = 1,
	    .base = 0,
	    .base_origin = &base_origin,
	    .peak = GRAPH_NO_COLUMN,
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

/* What all of it has more at the end than at the beginning, what of that is a trend, and the rows. */
static int write_growth(
    struct json *json, const struct api_facts *facts, const struct growth *growth, size_t last)
{
	struct contrast_sum sum;
	int err = growth_sum(facts, last, &sum);

	if (err)
		return err;
	json_object(json, "total");
	json_number(json, "first", sum.before, 0);
	json_number(json, "difference", sum.after - sum.before, 0);
	json_number(json, "difference_error", sqrt(fmax(sum.variance, 0)), 1);
	growth_json_trend(json, &growth->total);
	json_end(json);
	growth_json_rows(json, "rows", &facts->traces, growth, facts->query->rows);
	return 0;
}

int api_change_growth(struct json *json, const struct api_facts *facts)
{
	const size_t count = facts->traces.column_count, last = count - 1;
	const bool is_series = facts->is_series && facts->process_counts[0];
	int64_t *times_ns = calloc(count + 1, sizeof(*times_ns));
	struct growth growth = {0};
	int err = times_ns ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		times_ns[i] = facts->origins[i].time_ns;
	if (!err && is_series)
		err = growth_make(&growth, &facts->traces, 0, times_ns, count);
	free(times_ns);
	if (err == -ENODATA)
		err = 0;
	if (!err) {
		api_facts_head(json, facts, last);
		json_integer(json, "snapshots", (int64_t)count);
		json_integer(json, "snapshots_least", TREND_POINTS_LEAST);
		json_boolean(json, "one_process", is_series && facts->process_counts[last] == 1);
		json_integer(json, "series_ns", facts->origins[last].time_ns - facts->origins[0].time_ns);
		json_integer(json, "began_since",
		    (int64_t)facts->process_counts[last] - (int64_t)facts->process_counts[0]);
	}
	if (!err && growth.rows)
		err = write_growth(json, facts, &growth, last);
	if (!err)
		err = api_facts_answer(json, facts, last, is_series ? &growth : NULL);
	growth_fini(&growth);
	return err;
}
