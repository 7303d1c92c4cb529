/* SPDX-License-Identifier: Apache-2.0 */
/*
 * massif's output (valgrind's heap profiler), which ms_print and massif-visualizer draw: a header, then
 * snapshots with a time and a size, some with a call tree from the leaf outwards:
 *
 *	n2: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 *	 n1: 900 0x401000: load (load.c:12)
 *	  n0: 900 0x402000: main (main.c:3)
 *	 n0: 100 in 3 places, all below massif's threshold (1.00%)
 *
 * Each column becomes a detailed snapshot. ms_print wants addresses: the number of the frame stands in for
 * one.
 */
#include <errno.h>
#include <inttypes.h>

#include "pprof/analysis/tree.h"
#include "pprof/export/format.h"
#include "pprof/text/utf8.h"

/* ms_print recurses for every level, and nobody reads deeper stacks than this. */
enum { DEPTH_MAX = 200 };

struct writing {
	FILE *out;
	const struct traces *traces;
	const struct tree *tree;
	int64_t least; /* smaller nodes are combined into one line */
};

static void write_name(FILE *out, const char *name)
{
	while (*name && !ferror(out))
		name = utf8_put(out, name, ' ');
}

static void write_place(const struct writing *w, uint32_t number)
{
	const struct frames_row *frame = &w->traces->frames.rows[number];

	fprintf(w->out, "0x%X: ", 0x1000 + number);
	write_name(w->out, frame->name);
	if (*frame->file && frame->line > 0) {
		fputs(" (", w->out);
		write_name(w->out, frame->file);
		fprintf(w->out, ":%" PRId64 ")", frame->line);
	} else if (*frame->module) {
		fputs(" (in ", w->out);
		write_name(w->out, frame->module);
		putc(')', w->out);
	}
}

struct folded {
	uint32_t shown, hidden;
	int64_t hidden_value;
};

/* Children are sorted by size, so those below the threshold are the last ones. */
static struct folded fold(const struct writing *w, uint32_t node)
{
	struct folded folded = {0, 0, 0};

	for (uint32_t child = w->tree->nodes[node].child; child != TREE_NONE;
	     child = w->tree->nodes[child].next) {
		int64_t value = w->tree->nodes[child].sum.value;

		if (value >= w->least && value > 0) {
			folded.shown++;
		} else if (value > 0) {
			folded.hidden++;
			traces_sum(&folded.hidden_value, value);
		}
	}
	return folded;
}

static void write_hidden(const struct writing *w, int depth, const struct folded *folded)
{
	if (folded->hidden)
		fprintf(w->out,
		    "%*sn0: %" PRId64 " in %" PRIu32 " place%s, all below massif's threshold (%.2f%%)\n",
		    depth, "", folded->hidden_value, folded->hidden, folded->hidden == 1 ? "" : "s",
		    100.0 * (double)w->least /
		        (double)(w->tree->nodes[0].sum.value ? w->tree->nodes[0].sum.value : 1));
}

static uint32_t shown_child(const struct writing *w, uint32_t node, int depth)
{
	uint32_t child = w->tree->nodes[node].child;

	if (child == TREE_NONE || depth >= DEPTH_MAX || w->tree->nodes[child].sum.value < w->least ||
	    w->tree->nodes[child].sum.value <= 0)
		return TREE_NONE;
	return child;
}

/* Walks the tree without recursion: to the first child, else to the next sibling, else up. The line for a
 * node's small children follows its other children. */
static void write_tree(const struct writing *w)
{
	uint32_t at = 0;
	int depth = 0;

	for (;;) {
		const struct tree_node *node = &w->tree->nodes[at];
		struct folded folded = fold(w, at);
		uint32_t child = shown_child(w, at, depth);

		if (depth >= DEPTH_MAX)
			folded = (struct folded){0, 0, 0};
		fprintf(w->out, "%*sn%" PRIu32 ": %" PRId64 " ", depth, "",
		    folded.shown + (folded.hidden ? 1 : 0), node->sum.value);
		if (at == 0)
			fputs("(heap allocation functions) malloc/new/new[], --alloc-fns, etc.", w->out);
		else
			write_place(w, node->frame);
		putc('\n', w->out);
		if (child != TREE_NONE) {
			at = child;
			depth++;
			continue;
		}
		write_hidden(w, depth + 1, &folded);
		for (;;) {
			uint32_t next;

			if (at == 0)
				return;
			next = w->tree->nodes[at].next;
			if (next != TREE_NONE && w->tree->nodes[next].sum.value >= w->least &&
			    w->tree->nodes[next].sum.value > 0) {
				at = next;
				break;
			}
			at = w->tree->nodes[at].parent;
			folded = fold(w, at);
			write_hidden(w, depth, &folded);
			depth--;
		}
	}
}

static int write_snapshot(FILE *out, const struct traces *t, size_t column, enum measure_kind kind,
    const struct export_request *options, bool peak)
{
	struct tree tree;
	int err = tree_make(&tree, t, column, kind, true);
	int64_t total = err ? 0 : tree.nodes[0].sum.value, milliseconds;
	struct writing w = {out, t, &tree, 0};

	/* The times are in rising order, and any that the files say. */
	if (__builtin_sub_overflow(options->time_ns[column], options->time_ns[0], &milliseconds))
		milliseconds = INT64_MAX;
	milliseconds /= 1000000;
	if (!err) {
		w.least = (int64_t)((double)total * options->threshold_permille / 1000);
		fprintf(out,
		    "#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRId64 "\nmem_heap_B=%" PRId64
		    "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		    column, milliseconds > 0 ? milliseconds : 0, total > 0 ? total : 0,
		    peak ? "peak" : "detailed");
		write_tree(&w);
	}
	tree_fini(&tree);
	return err;
}

int massif_write(FILE *out, const struct traces *t, const struct export_request *request)
{
	const enum measure_kind kind = request->kind;
	size_t peak = 0;
	int err = 0;

	for (size_t i = 1; i < request->series_count; i++)
		if (traces_all(t, i, kind) > traces_all(t, peak, kind))
			peak = i;
	fputs("desc: heaptap\ncmd: ", out);
	write_name(out, request->program);
	fputs("\ntime_unit: ms\n", out);
	for (size_t i = 0; i < request->series_count && !err; i++)
		err = write_snapshot(out, t, i, kind, request, i == peak);
	return err;
}
