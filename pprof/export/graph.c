/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/export/graph.h"

#include "pprof/analysis/column_diff.h"
#include "pprof/analysis/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct graph {
	const struct traces *traces;
	const struct graph_choice *choice;
	struct tree tree;
	uint32_t *ends; /* by row */
	bool *skip;     /* rows that are all zero in these columns */
	double scale;   /* of the new values of a kind */
	size_t column;  /* of the values that are written: the choice's, or its peak's */
	enum measure_kind kinds[MEASURE_COUNT];
	size_t kind_count;
};

static bool is_diff(const struct graph *g)
{
	return g->choice->base != GRAPH_NO_COLUMN;
}

static bool has_peak(const struct graph *g)
{
	return g->choice->peak != GRAPH_NO_COLUMN && traces_has(g->traces, MEASURE_INUSE);
}

/* ---- what a row has */

static double value_at(const struct graph *g, size_t row, enum measure_kind kind)
{
	return (double)traces_value(g->traces, row, g->column, kind) * g->scale;
}

static double base_at(const struct graph *g, size_t row, enum measure_kind kind)
{
	return is_diff(g) ? (double)traces_value(g->traces, row, g->choice->base, kind) : 0;
}

static struct traces_doubt doubt_at(const struct graph *g, size_t row, enum measure_kind kind)
{
	const struct graph_choice *c = g->choice;
	struct traces_doubt doubt = traces_doubt(g->traces, row, g->column, kind), old;

	if (!is_diff(g))
		return doubt;
	old = traces_doubt(g->traces, row, c->base, kind);
	return (struct traces_doubt){doubt.samples + old.samples,
	    c->same_process && !c->normalize ? column_diff_variance(g->traces, row, c->base, c->column, kind)
	                                     : doubt.variance * g->scale * g->scale + old.variance};
}

static bool is_zero(const struct graph *g, size_t row)
{
	for (size_t k = 0; k < g->kind_count; k++)
		if (value_at(g, row, g->kinds[k]) != 0 || base_at(g, row, g->kinds[k]) != 0)
			return false;
	return !has_peak(g) || traces_value(g->traces, row, g->choice->peak, MEASURE_INUSE) == 0;
}

/* ---- frames */

/* Numbers of paths, each once: 0 is "". */
static int write_paths(
    struct json *json, const struct traces *t, const char *list, bool module, uint32_t *numbers)
{
	struct intern paths = {0};
	int err = 0;

	for (uint32_t i = 0; i < t->frames.count && !err; i++) {
		const char *path = module ? t->frames.rows[i].module : t->frames.rows[i].file;

		err = intern_add(&paths, path, strlen(path), &numbers[i]);
	}
	json_array(json, list);
	for (uint32_t i = 0; i <= paths.count && !err; i++)
		json_text(json, NULL, intern_at(&paths, i));
	json_end(json);
	intern_fini(&paths);
	return err;
}

static void write_numbers(struct json *json, const char *key, const uint32_t *numbers, size_t count)
{
	json_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_integer(json, NULL, numbers[i]);
	json_end(json);
}

static void write_names(struct json *json, const struct traces *t)
{
	json_array(json, "name");
	for (uint32_t i = 0; i < t->frames.count; i++)
		json_text(json, NULL, t->frames.rows[i].name);
	json_end(json);
	json_array(json, "label");
	for (uint32_t i = 0; i < t->frames.count; i++)
		json_text(json, NULL,
		    t->frames.rows[i].label == t->frames.rows[i].name ? "" : t->frames.rows[i].label);
	json_end(json);
	json_array(json, "role");
	for (uint32_t i = 0; i < t->frames.count; i++)
		json_integer(json, NULL, t->frames.rows[i].role);
	json_end(json);
	if (!t->options.lines)
		return;
	json_array(json, "line");
	for (uint32_t i = 0; i < t->frames.count; i++)
		json_integer(json, NULL, t->frames.rows[i].line);
	json_end(json);
}

static int write_frames(struct json *json, const struct traces *t)
{
	const size_t count = (size_t)t->frames.count + 1;
	uint32_t *numbers = calloc(2 * count, sizeof(*numbers));
	int err;

	if (!numbers)
		return -ENOMEM;
	err = write_paths(json, t, "files", false, numbers);
	if (!err)
		err = write_paths(json, t, "modules", true, numbers + count);
	json_object(json, "frames");
	write_names(json, t);
	write_numbers(json, "file", numbers, t->frames.count);
	write_numbers(json, "module", numbers + count, t->frames.count);
	json_end(json);
	free(numbers);
	return err;
}

/* ---- nodes and rows */

static void write_nodes(struct json *json, const struct tree *tree)
{
	json_object(json, "nodes");
	json_array(json, "frame");
	for (uint32_t i = 0; i < tree->count; i++)
		json_integer(json, NULL, i ? (int64_t)tree->nodes[i].frame : -1);
	json_end(json);
	json_array(json, "parent");
	for (uint32_t i = 0; i < tree->count; i++)
		json_integer(json, NULL, i ? (int64_t)tree->nodes[i].parent : -1);
	json_end(json);
	json_end(json);
}

static uint32_t group_of(const struct traces *t, size_t row, bool age)
{
	return age ? t->rows[row].age : t->rows[row].thread;
}

/* The names that occur, in the order of their first rows; `numbers`: ours, by number of the traces' string.
 * */
static bool write_groups(
    struct json *json, const struct graph *g, const char *list, bool age, uint32_t *numbers)
{
	const struct traces *t = g->traces;
	uint32_t count = 0;

	json_array(json, list);
	json_text(json, NULL, "");
	for (size_t row = 0; row < t->row_count; row++) {
		uint32_t name = group_of(t, row, age);

		if (g->skip[row] || !name || numbers[name])
			continue;
		numbers[name] = ++count;
		json_text(json, NULL, intern_at(&t->strings, name));
	}
	json_end(json);
	return count > 0;
}

static void write_row_groups(
    struct json *json, const struct graph *g, const char *key, bool age, const uint32_t *numbers)
{
	json_array(json, key);
	for (size_t row = 0; row < g->traces->row_count; row++)
		if (!g->skip[row])
			json_integer(json, NULL, numbers[group_of(g->traces, row, age)]);
	json_end(json);
}

static int write_rows(struct json *json, const struct graph *g)
{
	const struct traces *t = g->traces;
	const size_t count = (size_t)t->strings.count + 1;
	uint32_t *numbers = calloc(2 * count, sizeof(*numbers));
	bool threads, ages;

	if (!numbers)
		return -ENOMEM;
	threads = write_groups(json, g, "threads", false, numbers);
	ages = write_groups(json, g, "ages", true, numbers + count);
	json_object(json, "rows");
	json_array(json, "node");
	for (size_t row = 0; row < t->row_count; row++)
		if (!g->skip[row])
			json_integer(json, NULL, g->ends[row]);
	json_end(json);
	json_array(json, "head");
	for (size_t row = 0; row < t->row_count; row++)
		if (!g->skip[row])
			json_integer(json, NULL, t->rows[row].head);
	json_end(json);
	json_array(json, "through");
	for (size_t row = 0; row < t->row_count; row++)
		if (!g->skip[row])
			json_integer(json, NULL, t->rows[row].through);
	json_end(json);
	if (threads)
		write_row_groups(json, g, "thread", false, numbers);
	if (ages)
		write_row_groups(json, g, "age", true, numbers + count);
	json_end(json);
	free(numbers);
	return 0;
}

/* ---- kinds */

static void write_all(struct json *json, const struct graph *g, enum measure_kind kind, bool known)
{
	const struct graph_choice *c = g->choice;
	struct traces_doubt doubt = traces_doubt_selected(g->traces, g->column, kind), old = {0, 0};
	double value = 0, base = 0, variance = 0;

	for (size_t row = 0; row < g->traces->row_count; row++) {
		value += value_at(g, row, kind);
		base += base_at(g, row, kind);
		variance += doubt_at(g, row, kind).variance;
	}
	if (is_diff(g))
		old = traces_doubt_selected(g->traces, c->base, kind);
	/* Samples of several states of one process cancel out. For several processes the columns know what
	 * they have twice. */
	if (!is_diff(g) || !c->same_process || c->normalize)
		variance = doubt.variance * g->scale * g->scale + old.variance;
	json_object(json, "all");
	json_number(json, "value", value, 0);
	if (is_diff(g))
		json_number(json, "base", base, 0);
	if (known) {
		json_number(json, "error", sqrt(fmax(variance, 0)), 1);
		json_number(json, "samples", doubt.samples + old.samples, 1);
	}
	json_end(json);
}

enum doubt_part { PART_ERROR, PART_SAMPLES };

static void write_doubts(
    struct json *json, const struct graph *g, const char *key, enum measure_kind kind, enum doubt_part part)
{
	bool any = false;

	for (size_t row = 0; row < g->traces->row_count && !any; row++) {
		struct traces_doubt doubt = doubt_at(g, row, kind);

		any = (part == PART_ERROR ? doubt.variance : doubt.samples) != 0;
	}
	json_array(json, key);
	for (size_t row = 0; row < g->traces->row_count && any; row++) {
		struct traces_doubt doubt = doubt_at(g, row, kind);

		if (!g->skip[row])
			json_number(json, NULL,
			    part == PART_ERROR ? sqrt(fmax(doubt.variance, 0)) : doubt.samples, 1);
	}
	json_end(json);
}

static void write_values(struct json *json, const struct graph *g, const char *key, enum measure_kind kind,
    double (*at)(const struct graph *g, size_t row, enum measure_kind kind))
{
	json_array(json, key);
	for (size_t row = 0; row < g->traces->row_count; row++)
		if (!g->skip[row])
			json_number(json, NULL, at(g, row, kind), 0);
	json_end(json);
}

static double scale_of(const struct graph *g, enum measure_kind kind)
{
	double before = 0, after = 0;

	for (size_t row = 0; row < g->traces->row_count && is_diff(g); row++) {
		before += (double)traces_value(g->traces, row, g->choice->base, kind);
		after += (double)traces_value(g->traces, row, g->choice->column, kind);
	}
	return g->choice->normalize && before > 0 && after > 0 ? before / after : 1;
}

static const char *kind_name(const struct graph *g, enum measure_kind kind)
{
	if (kind == MEASURE_INUSE && g->column == g->choice->peak)
		return "peak";
	return kind == MEASURE_OTHER ? g->traces->types[g->traces->kinds[MEASURE_OTHER]]
	                             : traces_kind_word(kind);
}

static void write_kind(struct json *json, struct graph *g, enum measure_kind kind)
{
	const struct traces *t = g->traces;
	const bool known = !t->unsure && kind != MEASURE_OTHER;

	g->scale = scale_of(g, kind);
	json_object(json, NULL);
	json_text(json, "name", kind_name(g, kind));
	json_text(json, "unit", traces_unit(t, kind));
	write_all(json, g, kind, known);
	write_values(json, g, "value", kind, value_at);
	if (is_diff(g))
		write_values(json, g, "base", kind, base_at);
	if (known) {
		write_doubts(json, g, "error", kind, PART_ERROR);
		write_doubts(json, g, "samples", kind, PART_SAMPLES);
	} else {
		json_number(json, "error", NAN, 0);
	}
	json_end(json);
}

/* ---- the whole */

static void write_about(struct json *json, const struct graph *g)
{
	const struct graph_choice *c = g->choice;
	const struct origin *o = c->origin;

	json_text(json, "title", c->title);
	json_object(json, "about");
	if (o) {
		json_integer(json, "pid", o->pid);
		json_text(json, "host", o->host);
		json_integer(json, "time_ns", o->time_ns);
		json_text(json, "cause", o->cause);
		json_text(json, "not_seen", o->unseen);
		json_text(json, "samples", c->samples ? c->samples : "");
		json_boolean(json, "running", o->ours && !c->ended);
		json_text(json, "program", o->program);
		json_integer(json, "period", strcmp(o->period_unit, "bytes") == 0 ? o->period : 0);
	}
	if (has_peak(g))
		json_boolean(json, "peak_is_snapshot", c->peak_is_snapshot);
	if (is_diff(g) && c->base_origin) {
		json_text(json, "base_program", c->base_origin->name);
		json_integer(json, "base_pid", c->base_origin->pid);
		json_integer(json, "base_time_ns", c->base_origin->time_ns);
		json_text(json, "base_cause", c->base_origin->cause);
	}
	json_boolean(json, "upper_limits", g->traces->is_bound);
	json_end(json);
	if (!is_diff(g))
		return;
	json_object(json, "diff");
	json_boolean(json, "same_process", c->same_process);
	json_boolean(json, "normalized", c->normalize);
	json_end(json);
}

static void kinds_choose(struct graph *g)
{
	g->kinds[g->kind_count++] = g->choice->kind;
	for (int kind = 0; kind < MEASURE_COUNT; kind++)
		if (traces_has(g->traces, (enum measure_kind)kind) && kind != (int)g->choice->kind)
			g->kinds[g->kind_count++] = (enum measure_kind)kind;
}

int graph_write(struct json *json, const struct traces *t, const struct graph_choice *choice)
{
	struct graph g = {.traces = t, .choice = choice, .scale = 1, .column = choice->column};
	int err = 0;

	g.ends = calloc((size_t)t->row_count + 1, sizeof(*g.ends));
	g.skip = calloc((size_t)t->row_count + 1, sizeof(*g.skip));
	if (!g.ends || !g.skip)
		err = -ENOMEM;
	kinds_choose(&g);
	for (size_t row = 0; row < t->row_count && !err; row++)
		g.skip[row] = is_zero(&g, row);
	if (!err)
		err = tree_make_ends(&g.tree, t, g.skip, g.ends);
	if (!err) {
		write_about(json, &g);
		err = write_frames(json, t);
	}
	if (!err) {
		write_nodes(json, &g.tree);
		err = write_rows(json, &g);
	}
	json_array(json, "kinds");
	for (size_t k = 0; k < g.kind_count && !err; k++)
		write_kind(json, &g, g.kinds[k]);
	if (!err && has_peak(&g) && choice->peak != choice->column) {
		g.column = choice->peak;
		write_kind(json, &g, MEASURE_INUSE);
	}
	json_end(json);
	tree_fini(&g.tree);
	free(g.ends);
	free(g.skip);
	return err;
}
