/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

static int node_new(struct tree *tree, const struct traces *t, uint32_t parent, uint32_t frame)
{
	struct tree_node node = {.frame = frame, .parent = parent, .child = TREE_NONE, .next = TREE_NONE};

	if (tree->count == TREE_NONE)
		return -EOVERFLOW;
	if (array_reserve(&tree->nodes, &tree->capacity, (size_t)tree->count + 1, sizeof(*tree->nodes)))
		return -ENOMEM;
	tree->nodes[tree->count++] = node;
	return traces_check_memory(t, tree->capacity * sizeof(*tree->nodes) + index_bytes(&tree->index));
}

/* Index ids count from 1; the root (number 0) is not in the index. */
static int node_find(
    struct tree *tree, const struct traces *t, uint32_t parent, uint32_t frame, uint32_t *found)
{
	uint32_t fold = index_fold(index_mix(index_seed(), (uint64_t)parent << 32 | frame)), id;
	size_t cursor = index_start(fold);
	int err;

	while ((id = index_next(&tree->index, fold, &cursor))) {
		if (tree->nodes[id].parent == parent && tree->nodes[id].frame == frame) {
			*found = id;
			return 0;
		}
	}
	*found = tree->count;
	err = node_new(tree, t, parent, frame);
	if (!err)
		err = index_add(&tree->index, fold, *found);
	return err;
}

/* Adds the row's value to each node of its stack; *end is the last of them. */
static int walk(struct tree *tree, const struct traces *t, size_t row, bool inverted, int64_t value,
    struct traces_doubt doubt, uint32_t *end)
{
	const uint32_t *stack = traces_stack(t, row);
	uint32_t depth = t->rows[row].depth, at = 0;
	int err = 0;

	totals_sum_add(&tree->nodes[0].sum, value, doubt);
	for (uint32_t i = 0; i < depth && !err; i++) {
		err = node_find(tree, t, at, stack[inverted ? i : depth - 1 - i], &at);
		if (!err)
			totals_sum_add(&tree->nodes[at].sum, value, doubt);
	}
	*end = at;
	return err;
}

struct by_value {
	const struct tree *tree;
	const struct traces *traces;
};

static int compare_nodes(const void *left, const void *right, void *context)
{
	const struct by_value *by = context;
	const struct tree_node *a = &by->tree->nodes[*(const uint32_t *)left];
	const struct tree_node *b = &by->tree->nodes[*(const uint32_t *)right];

	if (a->sum.value != b->sum.value)
		return a->sum.value > b->sum.value ? 1 : -1;
	if (a->frame == TREE_NONE || b->frame == TREE_NONE)
		return 0;
	return strcmp(by->traces->frames.rows[b->frame].name, by->traces->frames.rows[a->frame].name);
}

/* Puts all nodes, smallest first, to the front of their parent's list, which so ends up largest first. */
static int link_children(struct tree *tree, const struct traces *t)
{
	struct by_value by = {tree, t};
	uint32_t *order = malloc(((size_t)tree->count + 1) * sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->count; i++)
		order[i] = i;
	qsort_r(order, tree->count, sizeof(*order), compare_nodes, &by);
	for (uint32_t i = 0; i < tree->count; i++) {
		struct tree_node *node = &tree->nodes[order[i]];

		if (order[i] == 0)
			continue;
		node->next = tree->nodes[node->parent].child;
		tree->nodes[node->parent].child = order[i];
	}
	free(order);
	return 0;
}

int tree_make(struct tree *tree, const struct traces *t, size_t column, enum measure_kind kind, bool inverted)
{
	struct traces_doubt doubt = traces_doubt_selected(t, column, kind);
	int err;

	memset(tree, 0, sizeof(*tree));
	err = node_new(tree, t, TREE_NONE, TREE_NONE);
	for (size_t row = 0; row < t->row_count && !err; row++) {
		int64_t value = traces_value(t, row, column, kind);
		uint32_t end;

		if (!value)
			continue;
		err = walk(tree, t, row, inverted, value, traces_doubt(t, row, column, kind), &end);
		if (!err)
			traces_sum(&tree->nodes[end].self, value);
	}
	if (err)
		return err;
	tree->nodes[0].sum.samples = doubt.samples;
	tree->nodes[0].sum.variance = doubt.variance;
	return link_children(tree, t);
}

int tree_make_ends(struct tree *tree, const struct traces *t, const bool *skip, uint32_t *ends)
{
	int err;

	memset(tree, 0, sizeof(*tree));
	err = node_new(tree, t, TREE_NONE, TREE_NONE);
	for (size_t row = 0; row < t->row_count && !err; row++) {
		ends[row] = TREE_NONE;
		if (!skip || !skip[row])
			err = walk(tree, t, row, false, 0, (struct traces_doubt){0, 0}, &ends[row]);
	}
	return err;
}

int tree_make_many(struct tree *tree, const struct traces *t, size_t column, const enum measure_kind *kinds,
    size_t kind_count, int64_t **values)
{
	uint32_t *ends = calloc((size_t)t->row_count + 1, sizeof(*ends));
	int err = ends ? 0 : -ENOMEM;

	*values = NULL;
	memset(tree, 0, sizeof(*tree));
	if (!err)
		err = node_new(tree, t, TREE_NONE, TREE_NONE);
	for (size_t row = 0; row < t->row_count && !err; row++)
		err = walk(tree, t, row, false, traces_value(t, row, column, kinds[0]),
		    (struct traces_doubt){0, 0}, &ends[row]);
	if (!err)
		err = link_children(tree, t);
	*values = err ? NULL : calloc((size_t)tree->count * kind_count, sizeof(**values));
	for (size_t row = 0; row < t->row_count && *values; row++)
		for (size_t k = 0; k < kind_count; k++)
			traces_sum(
			    &(*values)[ends[row] * kind_count + k], traces_value(t, row, column, kinds[k]));
	free(ends);
	return err ? err : *values ? 0 : -ENOMEM;
}

void tree_fini(struct tree *tree)
{
	free(tree->nodes);
	index_fini(&tree->index);
	memset(tree, 0, sizeof(*tree));
}
