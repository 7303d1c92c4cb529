/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree on a screen:
 *
 *	  8.1 MiB  100.0%  all
 *	  7.9 MiB   97.5%  main
 *	  6.0 MiB   74.1%  +- load
 *	  6.0 MiB   74.1%  |  parse
 *	  1.9 MiB   23.5%  '- serve
 *
 * A chain of single calls is printed without indent: only a branch adds to the indent, so that deep stacks
 * fit.
 */
#include "sampler/cmd/report/report.h"

#include "pprof/analysis/tree.h"
#include "pprof/export/traces_json.h"
#include "pprof/model/estimate.h"
#include "pprof/table/array.h"
#include "pprof/text/amount.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct printing {
	const struct screen *screen;
	const struct profile_input *input;
	const struct report_answer *answer;
	const struct tree *tree;
	enum measure_kind kind;
	double all;
	int64_t least;
	char *prefix; /* the branch lines to the left */
	size_t length, capacity;
};

/* Position in the children of a node. */
struct level {
	uint32_t next; /* the child to print next; TREE_NONE: none */
	size_t prefix; /* length of the prefix there */
	bool branches; /* the children are more than one line */
	uint32_t hidden;
	int64_t hidden_value;
};

static bool is_shown(const struct printing *p, uint32_t node)
{
	int64_t value = p->tree->nodes[node].sum.value;

	return value > 0 && value >= p->least;
}

static void level_enter(const struct printing *p, uint32_t node, struct level *level)
{
	uint32_t shown = 0;

	memset(level, 0, sizeof(*level));
	level->next = TREE_NONE;
	level->prefix = p->length;
	for (uint32_t child = p->tree->nodes[node].child; child != TREE_NONE;
	     child = p->tree->nodes[child].next) {
		if (is_shown(p, child)) {
			if (!shown++)
				level->next = child;
		} else if (p->tree->nodes[child].sum.value > 0) {
			level->hidden++;
			traces_sum(&level->hidden_value, p->tree->nodes[child].sum.value);
		}
	}
	/* Folded children that would be too small for a line of their own get no line together either, up to
	 * 1% of all. */
	if (level->hidden_value < p->least && (double)level->hidden_value < 0.01 * p->all)
		level->hidden = 0;
	level->branches = shown + (level->hidden ? 1 : 0) + (p->tree->nodes[node].self > 0 ? 1 : 0) > 1;
}

static void print_line(const struct printing *p, int64_t value, const char *branch)
{
	char text[AMOUNT_BYTES];

	fprintf(p->screen->out, "%10s",
	    amount_measure((double)value, traces_unit(&p->input->traces, p->kind), text));
	if (p->all > 0)
		fprintf(p->screen->out, " %5.1f%%", 100 * (double)value / p->all);
	fprintf(p->screen->out, "  %s%.*s%s%s", screen_style(p->screen, SCREEN_DIM), (int)p->length,
	    p->prefix ? p->prefix : "", branch, screen_style(p->screen, SCREEN_PLAIN));
}

static bool is_few(const struct printing *p, uint32_t node)
{
	const struct totals_sum *sum = &p->tree->nodes[node].sum;

	return !p->input->traces.unsure && estimate_is_few((double)sum->value, sum->samples, sum->variance);
}

/* A chain of calls with the same few samples is marked once, at its beginning. */
static void print_node(const struct printing *p, uint32_t node, const char *branch)
{
	const struct totals_sum *sum = &p->tree->nodes[node].sum;
	int room = screen_room(p->screen, 20 + (int)p->length + (int)strlen(branch));
	uint32_t above = p->tree->nodes[node].parent;
	bool few = is_few(p, node) &&
	    !(above != 0 && is_few(p, above) && p->tree->nodes[above].sum.samples - sum->samples < 0.5);
	char doubt[AMOUNT_BYTES];

	print_line(p, sum->value, branch);
	if (few && room > 32)
		room -= 12;
	report_frame(p->screen, &p->input->traces, p->tree->nodes[node].frame, room);
	if (few)
		fprintf(p->screen->out, " (%s)",
		    estimate_doubt((double)sum->value, sum->samples, sum->variance, false, doubt));
	putc('\n', p->screen->out);
}

static int prefix_push(struct printing *p, const char *text)
{
	if (array_reserve(&p->prefix, &p->capacity, p->length + 4, 1))
		return -ENOMEM;
	memcpy(p->prefix + p->length, text, 3);
	p->length += 3;
	return 0;
}

/* Indents take at most two thirds of the screen; deeper nodes get the same indent. */
static bool prefix_fits(const struct printing *p)
{
	return !p->screen->width || 20 + (int)p->length < p->screen->width * 2 / 3;
}

static void print_hidden(struct printing *p, const struct level *level)
{
	p->length = level->prefix;
	print_line(p, level->hidden_value, level->branches ? "'- " : "");
	fprintf(p->screen->out, "(%u more)\n", level->hidden);
}

/* Prints the next child and enters it. */
static int step(struct printing *p, struct level *levels, size_t *depth)
{
	struct level *level = &levels[*depth - 1];
	uint32_t node = level->next, sibling = p->tree->nodes[node].next;
	bool last;

	level->next = sibling != TREE_NONE && is_shown(p, sibling) ? sibling : TREE_NONE;
	last = level->next == TREE_NONE && !level->hidden;
	p->length = level->prefix;
	print_node(p, node, !level->branches ? "" : last ? "'- " : "+- ");
	if (level->branches && prefix_fits(p) && prefix_push(p, last ? "   " : "|  "))
		return -ENOMEM;
	level_enter(p, node, &levels[(*depth)++]);
	return 0;
}

static int print_tree(struct printing *p)
{
	struct level *levels = NULL;
	size_t depth = 0, capacity = 0;
	int err = array_reserve(&levels, &capacity, 1, sizeof(*levels));

	if (!err)
		level_enter(p, 0, &levels[depth++]);
	while (depth && !err) {
		struct level *level = &levels[depth - 1];

		if (level->next == TREE_NONE) {
			if (level->hidden)
				print_hidden(p, level);
			depth--;
			continue;
		}
		err = array_reserve(&levels, &capacity, depth + 1, sizeof(*levels));
		if (!err)
			err = step(p, levels, &depth);
	}
	free(levels);
	return err;
}

static void print_heading(const struct printing *p, bool inverted)
{
	fprintf(p->screen->out, "\n%s%s, %s%s\n", screen_style(p->screen, SCREEN_HEAD),
	    inverted ? "Callers of what allocates" : "Call tree", report_kind(&p->input->traces, p->kind),
	    screen_style(p->screen, SCREEN_PLAIN));
	print_line(p, p->tree->nodes[0].sum.value, "");
	fputs("all\n", p->screen->out);
}

/* All nodes, parents first; none is folded. */
static void write_tree(const struct printing *p, size_t column, bool inverted)
{
	struct json json = {.out = p->screen->out};
	const struct traces *t = &p->input->traces;

	report_json_head(&json, p->input, p->answer, column);
	json_text(&json, "type", traces_kind_word(p->kind));
	json_text(&json, "unit", traces_unit(t, p->kind));
	json_boolean(&json, "inverted", inverted);
	json_integer(&json, "total", p->tree->nodes[0].sum.value);
	json_array(&json, "tree");
	for (uint32_t i = 1; i < p->tree->count; i++) {
		const struct tree_node *node = &p->tree->nodes[i];

		traces_json_frame(&json, t, node->frame);
		json_integer(&json, "parent", (int64_t)node->parent - 1);
		json_integer(&json, "value", node->sum.value);
		json_integer(&json, "self", node->self);
		if (!t->unsure && p->kind != MEASURE_OTHER) {
			json_number(&json, "error", sqrt(node->sum.variance), 1);
			json_number(&json, "samples", node->sum.samples, 1);
		}
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

int report_tree(const struct screen *screen, const struct profile_input *input,
    const struct report_answer *answer, const struct read_options *read)
{
	struct printing p = {.screen = screen, .input = input, .answer = answer};
	struct tree tree;
	size_t column;
	int err;

	if (profile_input_kind(input, read->sort, &p.kind, &column))
		return 1;
	p.all = (double)traces_all(&input->traces, column, p.kind);
	err = tree_make(&tree, &input->traces, column, p.kind, read->inverted);
	p.tree = &tree;
	p.least = (int64_t)(p.all * read->threshold_permille / 1000);
	if (!err && read->json) {
		write_tree(&p, column, read->inverted);
	} else if (!err) {
		print_heading(&p, read->inverted);
		err = print_tree(&p);
	}
	if (err)
		profile_input_say_memory(read, err);
	free(p.prefix);
	tree_fini(&tree);
	return err ? 1 : 0;
}
