/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptrack's data file (format 3, as heaptrack_interpret writes it and heaptrack_print and heaptrack_gui
 * read it): strings, places, traces as a tree, and every single allocation and free. A profile has no single
 * allocations; they are generated from its sums: for each stack as many blocks of the mean size as were
 * allocated, and a free for each that is not in use. So allocations, leaks and sizes are right, and the peak
 * is what is in use; order and time mean nothing, and no block counts as temporary, because the profile does
 * not say which were.
 *
 * Beyond EVENTS_MAX events a block stands for several: `*scale` of them. Sums stay right; counts are that
 * much lower.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/tree.h"
#include "pprof/export/format.h"
#include "pprof/text/utf8.h"

#define EVENTS_MAX UINT64_C(4000000)

struct writing {
	FILE *out;
	const struct traces *traces;
	struct intern strings;
	uint64_t scale;
	uint32_t info_count;
	uint32_t pending; /* allocation entry of a block that is still to be freed; 0: none */
};

/* A string is written when it is first needed; its number is its position in the file, from 1. */
static int write_string(struct writing *w, const char *text, uint32_t *number)
{
	uint32_t before = w->strings.count;
	int err = intern_add(&w->strings, text, strlen(text), number);
	char *clean;

	if (err || w->strings.count == before)
		return err;
	clean = strdup(text);
	if (!clean)
		return -ENOMEM;
	utf8_disarm(clean, strlen(clean));
	fprintf(w->out, "s %zx %s\n", strlen(clean), clean);
	free(clean);
	return 0;
}

/* Places are numbered from 1: frame number + 1. */
static int write_places(struct writing *w)
{
	for (uint32_t i = 0; i < w->traces->frames.count; i++) {
		const struct frames_row *frame = &w->traces->frames.rows[i];
		uint32_t module, name, file = 0;
		int err = write_string(w, frame->module, &module);

		if (!err)
			err = write_string(w, frame->name, &name);
		if (!err && *frame->file)
			err = write_string(w, frame->file, &file);
		if (err)
			return err;
		fprintf(w->out, "i %" PRIx32 " %" PRIx32 " %" PRIx32, 0x1000 + i, module, name);
		if (file)
			fprintf(w->out, " %" PRIx32 " %" PRIx64, file,
			    frame->line > 0 ? (uint64_t)frame->line : 0);
		putc('\n', w->out);
	}
	return 0;
}

/* heaptrack's traces are nodes of a tree, numbered from 1, 0 is no parent: our node numbers as they are. */
static void write_traces(struct writing *w, const struct tree *tree)
{
	for (uint32_t i = 1; i < tree->count; i++)
		fprintf(
		    w->out, "t %" PRIx32 " %" PRIx32 "\n", tree->nodes[i].frame + 1, tree->nodes[i].parent);
}

struct blocks {
	uint64_t count;
	/* count blocks of small or large bytes, so that the sum is exact */
	uint64_t small, small_count, large;
};

static struct blocks blocks_of(uint64_t bytes, uint64_t objects, uint64_t scale)
{
	struct blocks blocks = {0};

	if (!bytes && !objects)
		return blocks;
	blocks.count = objects / scale + (objects % scale ? 1 : 0);
	if (!blocks.count)
		blocks.count = 1;
	blocks.small = bytes / blocks.count;
	blocks.large = blocks.small + 1;
	blocks.small_count = blocks.count - bytes % blocks.count;
	return blocks;
}

/*
 * heaptrack counts a block as temporary if its free comes right after its allocation, which it recognizes by
 * the allocation entry. So every free is delayed until another block, of another entry, has been allocated;
 * for that, blocks of one kind alternate between two entries.
 */
static void write_allocated(struct writing *w, uint32_t info)
{
	fprintf(w->out, "+ %" PRIx32 "\n", info);
}

static void write_late_free(struct writing *w)
{
	if (w->pending)
		fprintf(w->out, "- %" PRIx32 "\n", w->pending);
	w->pending = 0;
}

static void write_freed(struct writing *w, uint64_t size, uint64_t count, uint32_t node)
{
	uint32_t info = w->info_count;

	if (!count)
		return;
	w->info_count += 2;
	fprintf(w->out, "a %" PRIx64 " %" PRIx32 "\na %" PRIx64 " %" PRIx32 "\n", size, node, size, node);
	for (uint64_t i = 0; i < count && !ferror(w->out); i++) {
		write_allocated(w, info + (uint32_t)(i & 1));
		write_late_free(w);
		w->pending = info + (uint32_t)(i & 1);
	}
}

static void write_kept(struct writing *w, uint64_t size, uint64_t count, uint32_t node)
{
	if (!count)
		return;
	fprintf(w->out, "a %" PRIx64 " %" PRIx32 "\n", size, node);
	for (uint64_t i = 0; i < count && !ferror(w->out); i++) {
		write_allocated(w, w->info_count);
		write_late_free(w);
	}
	w->info_count++;
}

static uint64_t clamp(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

enum { ALLOC_OBJECTS, ALLOC_BYTES, INUSE_OBJECTS, INUSE_BYTES, KINDS };

/* What write_events() writes of a node. A profile without alloc_* has no freed blocks. */
struct amounts {
	uint64_t freed, freed_bytes; /* allocated and no longer in use */
	uint64_t kept, kept_bytes;
};

static uint64_t less(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

static struct amounts amounts_of(const int64_t *v)
{
	struct amounts amounts = {.kept = clamp(v[INUSE_OBJECTS]), .kept_bytes = clamp(v[INUSE_BYTES])};

	amounts.freed = less(clamp(v[ALLOC_OBJECTS]), amounts.kept);
	amounts.freed_bytes = less(clamp(v[ALLOC_BYTES]), amounts.kept_bytes);
	return amounts;
}

static void write_events(struct writing *w, uint32_t count, const int64_t *values)
{
	for (uint32_t i = 1; i < count; i++) {
		struct amounts amounts = amounts_of(values + (size_t)i * KINDS);
		struct blocks blocks = blocks_of(amounts.freed_bytes, amounts.freed, w->scale);

		write_freed(w, blocks.small, blocks.small_count, i);
		write_freed(w, blocks.large, blocks.count - blocks.small_count, i);
	}
	for (uint32_t i = 1; i < count; i++) {
		struct amounts amounts = amounts_of(values + (size_t)i * KINDS);
		struct blocks blocks = blocks_of(amounts.kept_bytes, amounts.kept, w->scale);

		write_kept(w, blocks.small, blocks.small_count, i);
		write_kept(w, blocks.large, blocks.count - blocks.small_count, i);
	}
}

/* So that no more than about EVENTS_MAX events are written: of the same amounts as write_events() writes. */
static uint64_t scale_for(uint32_t count, const int64_t *values)
{
	static const double most = 0x1p63; /* no count is larger */
	double events = 0, scale;

	for (uint32_t i = 1; i < count; i++) {
		struct amounts amounts = amounts_of(values + (size_t)i * KINDS);

		events += 2 * (double)amounts.freed + (double)amounts.kept;
	}
	scale = events / (double)EVENTS_MAX;
	return scale > most ? (uint64_t)most : scale > 1 ? (uint64_t)scale + 1 : 1;
}

int heaptrack_write(FILE *out, const struct traces *t, const struct export_request *request)
{
	const char *command = request->program;
	static const enum measure_kind kinds[KINDS] = {
	    MEASURE_OBJECTS, MEASURE_ALLOC, MEASURE_INUSE_OBJECTS, MEASURE_INUSE};
	struct writing w = {.out = out, .traces = t, .info_count = 1};
	struct tree tree;
	int64_t *values;
	int err = tree_make_many(&tree, t, request->column, kinds, KINDS, &values);

	if (!err) {
		fputs("v 10400 3\nX ", out);
		while (*command)
			command = utf8_put(out, command, ' ');
		fputs("\nI 1000 0\n", out);
		err = write_places(&w);
	}
	if (!err) {
		write_traces(&w, &tree);
		w.scale = *request->scale = scale_for(tree.count, values);
		/* heaptrack's "last allocation" is entry 0 before there is any, so entry 0 must not be a real
		 * one. */
		if (tree.count > 1)
			fputs("a 0 1\n", out);
		write_events(&w, tree.count, values);
		write_late_free(&w);
		fputs("c 1\n", out);
	}
	intern_fini(&w.strings);
	free(values);
	tree_fini(&tree);
	return err;
}
