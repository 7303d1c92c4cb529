/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree: stacks share the nodes of their common beginning. Read from the outermost frame inwards it
 * shows callees; inverted, from the leaf outwards, it shows callers.
 *
 * Nodes are an array, and nothing here recurses: the stacks of a hostile profile may be as deep as the file
 * is long.
 */
#ifndef PPROF_ANALYSIS_TREE_H
#define PPROF_ANALYSIS_TREE_H

#include "pprof/analysis/totals.h"

#define TREE_NONE UINT32_MAX

struct tree_node {
	uint32_t frame;               /* TREE_NONE at the root */
	uint32_t parent, child, next; /* TREE_NONE where there is none */
	struct totals_sum sum;        /* including everything below */
	int64_t self;                 /* of stacks that end here */
};

struct tree {
	struct tree_node *nodes; /* [0] is the root; parents come before their children */
	uint32_t count;
	size_t capacity;
	struct index index;
};

/* Siblings come largest first. 0, -ENOMEM, -EFBIG (beyond the traces' max_bytes) or -EOVERFLOW (too many
 * nodes); call tree_fini() in all cases. */
int tree_make(
    struct tree *tree, const struct traces *t, size_t column, enum measure_kind kind, bool inverted);
void tree_fini(struct tree *tree);

/* Makes the nodes only, without sums and lists of children. ends[row] is the node where the stack of that row
 * ends. A row with skip[row] gets no node, and ends at TREE_NONE. skip may be NULL. */
int tree_make_ends(struct tree *tree, const struct traces *t, const bool *skip, uint32_t *ends);

/* Makes the same nodes for every kind, for formats that hold several. values[node * kind_count + k] is the
 * own value of a node, without the nodes below. The caller frees values. */
int tree_make_many(struct tree *tree, const struct traces *t, size_t column, const enum measure_kind *kinds,
    size_t kind_count, int64_t **values);

#endif
