/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_view.h"

#include "pprof/analysis/column_diff.h"
#include "pprof/analysis/growth.h"
#include "pprof/analysis/leaks.h"
#include "pprof/analysis/totals.h"
#include "pprof/analysis/tree.h"
#include "pprof/export/graph.h"
#include "pprof/export/traces_json.h"
#include "pprof/model/estimate.h"
#include "serve/api_facts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct traces_doubt doubt_of(const struct totals_sum *sum)
{
	return (struct traces_doubt){sum->samples, sum->variance};
}

/* Writes the sum before the filters, and after. */
static void write_totals(struct json *json, const struct api_facts *facts, size_t column)
{
	const struct traces *t = &facts->traces;
	double selected = 0;

	for (size_t row = 0; row < t->row_count; row++)
		selected += (double)traces_value(t, row, column, facts->kind);
	json_object(json, "total");
	api_facts_sum(json, facts, "value", (double)traces_all(t, column, facts->kind),
	    traces_doubt_all(t, column, facts->kind));
	json_end(json);
	json_object(json, "selected");
	api_facts_sum(json, facts, "value", selected, traces_doubt_selected(t, column, facts->kind));
	json_end(json);
}

static size_t rows_shown(const struct api_query *query, size_t count)
{
	return query->rows && query->rows < count ? query->rows : count;
}

/* ---- top */

static int write_top(struct json *json, const struct api_facts *facts)
{
	const struct traces *t = &facts->traces;
	struct totals totals;
	int err = totals_make(&totals, t, 0, facts->kind);

	if (err)
		return err;
	totals_sort(&totals, t, facts->query->cum ? TOTALS_BY_CUM : TOTALS_BY_FLAT);
	api_facts_head(json, facts, 0);
	api_facts_kind(json, facts);
	write_totals(json, facts, 0);
	json_array(json, "rows");
	for (size_t i = 0; i < rows_shown(facts->query, totals.count); i++) {
		const struct totals_row *row = &totals.rows[i];

		traces_json_frame(json, t, row->frame);
		api_facts_sum(json, facts, "flat", (double)row->flat.value, doubt_of(&row->flat));
		api_facts_sum(json, facts, "cum", (double)row->cum.value, doubt_of(&row->cum));
		json_end(json);
	}
	json_end(json);
	json_integer(json, "left_out", (int64_t)(totals.count - rows_shown(facts->query, totals.count)));
	totals_fini(&totals);
	return api_facts_answer(json, facts, 0, NULL);
}

/* ---- tree */

/* Nodes below the threshold are left out with their children. Gives the other nodes numbers, and
 * the root -1. */
static int64_t number_nodes(const struct tree *tree, unsigned int permille, int64_t *numbers)
{
	const double least = fabs((double)tree->nodes[0].sum.value) * permille / 1000;
	int64_t count = 0;

	numbers[0] = -1;
	for (uint32_t i = 1; i < tree->count; i++) {
		const uint32_t parent = tree->nodes[i].parent;
		bool shown = (parent == 0 || numbers[parent] >= 0) &&
		    (!permille || fabs((double)tree->nodes[i].sum.value) >= least);

		numbers[i] = shown ? count++ : -2;
	}
	return count;
}

static int write_tree(struct json *json, const struct api_facts *facts)
{
	const struct traces *t = &facts->traces;
	int64_t *numbers = NULL, shown = 0;
	struct tree tree;
	int err = tree_make(&tree, t, 0, facts->kind, facts->query->inverted);

	if (!err)
		numbers = calloc((size_t)tree.count + 1, sizeof(*numbers));
	if (!err && !numbers)
		err = -ENOMEM;
	if (!err) {
		shown = number_nodes(&tree, facts->query->threshold_permille, numbers);
		api_facts_head(json, facts, 0);
		api_facts_kind(json, facts);
		json_boolean(json, "inverted", facts->query->inverted);
		write_totals(json, facts, 0);
		json_array(json, "rows");
		for (uint32_t i = 1; i < tree.count; i++) {
			const struct tree_node *node = &tree.nodes[i];

			if (numbers[i] < 0)
				continue;
			traces_json_frame(json, t, node->frame);
			json_integer(json, "parent", numbers[node->parent]);
			json_integer(json, "flat", node->self);
			json_integer(json, "cum", node->sum.value);
			if (api_facts_known(facts)) {
				json_number(json, "error", sqrt(node->sum.variance), 1);
				json_number(json, "samples", node->sum.samples, 1);
			}
			json_end(json);
		}
		json_end(json);
		json_integer(json, "left_out", (int64_t)tree.count - 1 - shown);
		err = api_facts_answer(json, facts, 0, NULL);
	}
	free(numbers);
	tree_fini(&tree);
	return err;
}

static int write_tree_columns(struct json *json, const struct api_facts *facts)
{
	const bool one = facts->process_counts[0] == 1;
	const bool has_peaks =
	    facts->traces.column_count > 1 && facts->process_counts[1] == facts->process_counts[0];
	struct origin origin = api_facts_origin(facts, 0);
	char several[320];
	const struct graph_choice choice = {
	    .title = one ? facts->title : api_facts_several(facts, 0, several, sizeof(several)),
	    .origin = &origin,
	    .samples = one ? origin.samples : "",
	    .ended = facts->ended[0],
	    .base = GRAPH_NO_COLUMN,
	    .peak = has_peaks ? 1 : GRAPH_NO_COLUMN,
	    .kind = facts->kind,
	};

	return graph_write(json, &facts->traces, &choice);
}

/* ---- leaks */

static int write_leaks(struct json *json, const struct api_facts *facts)
{
	const struct traces *t = &facts->traces;
	struct leaks leaks = {0};
	int err = leaks_find(&leaks, t, 0, NULL);

	if (err)
		return err;
	api_facts_head(json, facts, 0);
	json_object(json, "total");
	json_integer(json, "stacks", (int64_t)leaks.count);
	json_integer(json, "objects", leaks.objects);
	api_facts_sum(json, facts, "value", (double)leaks.bytes, traces_doubt_selected(t, 0, MEASURE_INUSE));
	json_end(json);
	json_array(json, "rows");
	for (size_t i = 0; i < rows_shown(facts->query, leaks.count); i++) {
		const struct leak *leak = &leaks.leaks[i];
		const struct traces_row *row = &t->rows[leak->row];

		json_object(json, NULL);
		json_text(json, "name",
		    row->depth ? t->frames.rows[traces_stack(t, leak->row)[row->head]].name : "");
		api_facts_sum(
		    json, facts, "flat", (double)leak->bytes, traces_doubt(t, leak->row, 0, MEASURE_INUSE));
		json_integer(json, "objects", leak->objects);
		traces_json_stack(json, t, leak->row);
		json_end(json);
	}
	json_end(json);
	json_integer(json, "left_out", (int64_t)(leaks.count - rows_shown(facts->query, leaks.count)));
	leaks_fini(&leaks);
	return 0;
}

/* ---- diff */

static bool is_sure(const struct column_diff_sum *sum)
{
	return column_diff_is_sure(sum, API_CHANCE_ERRORS);
}

/* Writes a change. For flat the prefix is "", and the members are "flat", "error", "base" and "new"; "cum_"
 * likewise. `beyond_chance` holds for all rows together, `within_two_errors` for the row by itself. */
static void write_change(struct json *json, const struct api_facts *facts, const char *name,
    const char *prefix, const struct column_diff_sum *sum, double threshold)
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
	json_boolean(json, KEY("beyond_chance"), column_diff_is_sure(sum, threshold));
#undef KEY
}

static int write_diff(struct json *json, const struct api_facts *facts)
{
	const struct traces *t = &facts->traces;
	const struct column_diff_options options = {
	    .after = 1,
	    .kind = facts->kind,
	    .same_process = api_facts_same_process(facts, 0, 1),
	    .normalize = facts->query->normalize,
	    .order = facts->query->cum ? TOTALS_BY_CUM : TOTALS_BY_FLAT,
	};
	struct column_diff compared;
	size_t shown;

	if (column_diff_make(&compared, t, &options))
		return -ENOMEM;
	shown =
	    facts->query->rows && facts->query->rows < compared.count ? facts->query->rows : compared.count;
	for (size_t column = 0; column < 2; column++) {
		json_object(json, column ? "new" : "base");
		api_facts_head(json, facts, column);
		json_end(json);
	}
	api_facts_kind(json, facts);
	json_boolean(json, "same_process", options.same_process);
	json_boolean(json, "normalized", options.normalize);
	json_number(json, "threshold", compared.threshold, 3);
	json_object(json, "total");
	write_change(json, facts, "change", "", &compared.sum, estimate_threshold(1));
	json_end(json);
	json_array(json, "rows");
	for (size_t i = 0; i < shown; i++) {
		traces_json_frame(json, t, compared.rows[i].frame);
		write_change(json, facts, "flat", "", &compared.rows[i].flat, compared.threshold);
		write_change(json, facts, "cum", "cum_", &compared.rows[i].cum, compared.threshold);
		json_end(json);
	}
	json_end(json);
	json_integer(json, "left_out", (int64_t)(compared.count - shown));
	column_diff_fini(&compared);
	return 0;
}

static int write_diff_columns(struct json *json, const struct api_facts *facts)
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

/* The change of all that is selected, from the first column to the last. */
static int growth_sum(const struct api_facts *facts, size_t last, struct column_diff_sum *sum)
{
	const struct column_diff_options options = {
	    .after = last, .kind = MEASURE_INUSE, .same_process = facts->is_series};
	struct column_diff compared;

	if (column_diff_make(&compared, &facts->traces, &options))
		return -ENOMEM;
	*sum = compared.sum;
	column_diff_fini(&compared);
	return 0;
}

/* Writes the change of all that is selected, its trend, and the rows. */
static int write_growth_rows(
    struct json *json, const struct api_facts *facts, const struct growth *growth, size_t last)
{
	struct column_diff_sum sum;
	int err = growth_sum(facts, last, &sum);

	if (err)
		return err;
	json_object(json, "total");
	json_number(json, "first", sum.before, 0);
	json_number(json, "difference", sum.after - sum.before, 0);
	json_number(json, "difference_error", sqrt(fmax(sum.variance, 0)), 1);
	traces_json_trend(json, &growth->total);
	json_end(json);
	traces_json_growth(json, "rows", &facts->traces, growth, facts->query->rows);
	return 0;
}

static int write_growth(struct json *json, const struct api_facts *facts)
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
		err = write_growth_rows(json, facts, &growth, last);
	if (!err)
		err = api_facts_answer(json, facts, last, is_series ? &growth : NULL);
	growth_fini(&growth);
	return err;
}

/* ---- all of them */

/* write_columns: as the page reads the view; NULL if the page does not. has_sentences: the page reads
 * sentences beside the columns. is_of_inuse: whatever sort= says, the view is of what is in use. */
static const struct api_view {
	const char *name;
	struct api_shape shape;
	int (*write)(struct json *json, const struct api_facts *facts);
	int (*write_columns)(struct json *json, const struct api_facts *facts);
	size_t columns_least, columns_most; /* columns_most 0: any number */
	bool is_of_inuse, has_sentences;
} views[] = {
    {"top", {FRAMES_SHORT, true, true, false}, write_top, NULL, 1, 1, false, false},
    {"tree", {FRAMES_SHORT, true, true, false}, write_tree, write_tree_columns, 1, 2, false, true},
    {"diff", {FRAMES_SHORT, true, true, false}, write_diff, write_diff_columns, 2, 2, false, false},
    {"growth", {FRAMES_SHORT, true, true, false}, write_growth, NULL, 1, 0, true, false},
    {"leaks", {FRAMES_LABELS, false, true, false}, write_leaks, NULL, 1, 1, true, false},
};

const struct api_view *api_view_find(const char *name)
{
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++)
		if (strcmp(views[i].name, name) == 0)
			return &views[i];
	return NULL;
}

static int check_columns(
    const struct api_view *view, const struct api_input *input, char *error, size_t error_bytes)
{
	if (input->count && input->column_count >= view->columns_least &&
	    (!view->columns_most || input->column_count <= view->columns_most))
		return 0;
	snprintf(error, error_bytes, "%s: %s", view->name,
	    view->columns_least == 2 ? "needs two profiles, base= and new=" : "no profile");
	return -EINVAL;
}

/* Sentences are about the rows of tables. A graph without sentences is better than none. */
static void write_sentences(struct json *json, struct api_facts *facts, const struct api_query *query,
    const struct api_input *input, char *error, size_t error_bytes)
{
	static const struct api_shape tables = {FRAMES_SHORT, true, true, false};

	api_facts_fini(facts);
	if (!api_facts_make(facts, query, input, &tables, error, error_bytes))
		(void)api_facts_answer(json, facts, 0, NULL);
}

int api_view_write(FILE *out, const struct api_view *view, const struct api_query *query,
    const struct api_input *input, char *error, size_t error_bytes)
{
	struct json json = {.out = out};
	const bool columns = query->columns && view->write_columns;
	const struct api_shape graph = {FRAMES_LABELS, false, true, view->has_sentences};
	struct api_facts facts = {0};
	int err = check_columns(view, input, error, error_bytes);

	if (err)
		return err;
	err = api_facts_make(&facts, query, input, columns ? &graph : &view->shape, error, error_bytes);
	if (!err && view->is_of_inuse && !traces_has(&facts.traces, MEASURE_INUSE)) {
		snprintf(error, error_bytes, "%s: these profiles do not say what is in use", view->name);
		err = -ENODATA;
	}
	if (!err) {
		if (view->is_of_inuse)
			facts.kind = MEASURE_INUSE;
		json_object(&json, NULL);
		err = columns ? view->write_columns(&json, &facts) : view->write(&json, &facts);
		if (!err && columns && view->has_sentences)
			write_sentences(&json, &facts, query, input, error, error_bytes);
		json_end(&json);
		if (err)
			snprintf(error, error_bytes, "not enough memory for this");
	}
	api_facts_fini(&facts);
	return err;
}
