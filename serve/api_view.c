/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_view.h"

#include "pprof/analysis/leaks.h"
#include "pprof/analysis/totals.h"
#include "pprof/analysis/tree.h"
#include "pprof/export/graph.h"
#include "pprof/export/stack_json.h"
#include "serve/api_change.h"
#include "serve/api_facts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct traces_doubt doubt_of(const struct totals_sum *sum)
{
	return (struct traces_doubt){sum->samples, sum->variance};
}

/* The sum over everything, before the filters and after. */
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

		stack_json_frame(json, t, row->frame);
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

/* Nodes below the threshold are left out with all that is below them. Numbers of those that stay, -1 for the
 * root. */
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
			stack_json_frame(json, t, node->frame);
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

static int write_columns(struct json *json, const struct api_facts *facts)
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
		stack_json(json, t, leak->row);
		json_end(json);
	}
	json_end(json);
	json_integer(json, "left_out", (int64_t)(leaks.count - rows_shown(facts->query, leaks.count)));
	leaks_fini(&leaks);
	return 0;
}

/* ---- all of them */

static const struct {
	const char *name;
	struct api_shape shape;
	int (*write)(struct json *json, const struct api_facts *facts);
	size_t columns_least, columns_most; /* 0: any number */
} views[] = {
    [API_TOP] = {"top", {FRAMES_SHORT, true, true, false}, write_top, 1, 1},
    [API_TREE] = {"tree", {FRAMES_SHORT, true, true, false}, write_tree, 1, 2},
    [API_DIFF] = {"diff", {FRAMES_SHORT, true, true, false}, api_change_diff, 2, 2},
    [API_GROWTH] = {"growth", {FRAMES_SHORT, true, true, false}, api_change_growth, 1, 0},
    [API_LEAKS] = {"leaks", {FRAMES_LABELS, false, true, false}, write_leaks, 1, 1},
};

int api_view_find(const char *name, enum api_view *view)
{
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++) {
		if (strcmp(views[i].name, name) != 0)
			continue;
		*view = (enum api_view)i;
		return 0;
	}
	return -EINVAL;
}

static int check_columns(enum api_view view, const struct api_input *input, char *error, size_t error_bytes)
{
	if (input->count && input->column_count >= views[view].columns_least &&
	    (!views[view].columns_most || input->column_count <= views[view].columns_most))
		return 0;
	snprintf(error, error_bytes, "%s: %s", views[view].name,
	    views[view].columns_least == 2 ? "needs two profiles, base= and new=" : "no profile");
	return -EINVAL;
}

int api_view_write(FILE *out, enum api_view view, const struct api_query *query,
    const struct api_input *input, char *error, size_t error_bytes)
{
	struct json json = {.out = out};
	static const struct api_shape tables = {FRAMES_SHORT, true, true, false};
	const bool columns = query->columns && (view == API_TREE || view == API_DIFF);
	const struct api_shape graph = {FRAMES_LABELS, false, true, view == API_TREE};
	struct api_facts facts = {0};
	int err = check_columns(view, input, error, error_bytes);

	if (err)
		return err;
	err = api_facts_make(&facts, query, input, columns ? &graph : &views[view].shape, error, error_bytes);
	if (!err && (view == API_LEAKS || view == API_GROWTH) && !traces_has(&facts.traces, MEASURE_INUSE)) {
		snprintf(
		    error, error_bytes, "%s: these profiles do not say what is in use", views[view].name);
		err = -ENODATA;
	}
	if (!err && (view == API_LEAKS || view == API_GROWTH))
		facts.kind = MEASURE_INUSE;
	if (!err) {
		json_object(&json, NULL);
		if (columns)
			err = view == API_TREE ? write_columns(&json, &facts)
			                       : api_change_columns(&json, &facts);
		else
			err = views[view].write(&json, &facts);
		if (!err && columns && view == API_TREE) {
			/* Sentences are about rows of tables. A graph without them is better than none. */
			api_facts_fini(&facts);
			err = api_facts_make(&facts, query, input, &tables, error, error_bytes);
			err = err ? 0 : api_facts_answer(&json, &facts, 0, NULL);
		}
		json_end(&json);
		if (err)
			snprintf(error, error_bytes, "not enough memory for this");
	}
	api_facts_fini(&facts);
	return err;
}
