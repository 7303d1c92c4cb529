/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/heap_snapshot.h"

#include "sampler/books/unseen.h"
#include "sampler/linux/jit_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory */

/* The reading that the summary shows. */
static void measure(struct unseen_facts *facts, const struct resident_watch *watch)
{
	const struct resident_reading *reading = resident_watch_shown(watch);
	const double anonymous = (double)reading->parts.bytes[RESIDENT_ANONYMOUS];

	if (!reading->time_ns)
		return;
	facts->measured = true;
	facts->resident = (double)reading->parts.total_bytes;
	facts->heap = reading->heap_bytes;
	facts->others = reading->parts.counters ? anonymous - facts->heap : anonymous;
	if (facts->others < 0)
		facts->others = 0;
}

/* ---- names */

static bool names_functions(const struct process *process)
{
	if (process->target.generated.jitdump.fd >= 0)
		return true;
	const int fd = perf_map_file_open(&process->target.generated.perf_map);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The part of a mapping whose code calls functions without names. Empty in most mappings. */
struct entry {
	uint64_t start, end; /* offsets in its file */
};

static struct entry *find_entries(const struct stacks *stacks)
{
	const uint32_t count = stacks_mapping_count(stacks);
	struct entry *entries = calloc(count + 1, sizeof(*entries));

	for (uint32_t i = 0; entries && i < count; i++) {
		const struct stack_mapping *mapping = stacks_mapping(stacks, i);

		if (mapping->kind == MAP_KIND_ANON) /* all of it was generated at run time */
			entries[i].end = UINT64_MAX;
		else
			(void)unseen_facts_runtime_entry(mapping->module, &entries[i].start, &entries[i].end);
	}
	return entries;
}

/* Says for each stack node whether its stack leads through such code. Outer nodes have smaller numbers. */
static bool *find_nameless(const struct stacks *stacks)
{
	const uint32_t count = stacks_node_count(stacks);
	struct entry *entries = find_entries(stacks);
	bool *through = entries ? calloc(count, sizeof(*through)) : NULL;

	for (uint32_t i = 1; through && i < count; i++) {
		const struct stack_node *node = stacks_node(stacks, i);
		const struct stack_frame *frame = stacks_frame(stacks, node->frame);
		const struct entry *entry = &entries[frame->marker ? 0 : frame->mapping];

		through[i] = through[node->outer] ||
		    (!frame->marker && frame->vaddr >= entry->start && frame->vaddr < entry->end);
	}
	free(entries);
	return through;
}

static void weigh_names(
    struct unseen_facts *facts, const struct process *process, const struct heap_view *view)
{
	bool *through = find_nameless(process->target.stacks);

	for (size_t i = 0; through && i < view->count; i++) {
		const struct heap_view_row *row = &view->rows[i];
		const double weight = (double)row->alloc.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);

		facts->named += weight;
		if (row->key.stack != UINT32_MAX && through[row->key.stack])
			facts->nameless += weight;
	}
	free(through);
}

void heap_snapshot_unseen_look(struct heap_snapshot_unseen *unseen, const struct process *process,
    const struct resident_watch *resident, const struct heap_view *view)
{
	const struct region *region = process->run->region;
	struct unseen_facts *facts = &unseen->facts;

	*facts = (struct unseen_facts){
	    .with_mmap = region_header(region)->record_mmap == 1, .own_malloc = region_unseen_malloc(region)};
	(void)region_unseen_files(region, facts->calls);
	unseen_facts_look(facts, process->target.maps, process->target.name);
	measure(facts, resident);
	if (facts->runtime.kind && process->target.readable && !process->target.closed) {
		facts->asks = facts->runtime.kind == RUNTIME_JVM && unseen_facts_asks(process->target.pid);
		facts->runtime_by_malloc =
		    unseen_facts_runtime_by_malloc(process->target.pid, facts->runtime.kind);
	}
	if (facts->runtime.kind && !names_functions(process))
		weigh_names(facts, process, view);
	unseen_describe(&unseen->texts, facts);
}

/* ---- comments */

/* The bytes in use, or the bytes allocated if none are in use. */
static double bytes_of_row(const struct heap_view *view, const struct heap_view_row *row)
{
	const uint64_t bytes_q8 = view->inuse.samples ? row->inuse.bytes_q8 : row->alloc.bytes_q8;

	return (double)bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
}

void heap_snapshot_unseen_comment(struct profile *profile, const struct heap_snapshot_unseen *unseen,
    const struct heap_view *view, const struct symbolizer *symbolizer)
{
	char line[UNSEEN_LINE_BYTES];
	struct unseen texts = unseen->texts;
	double nameless = 0, all = 0;

	for (size_t i = 0; i < view->count; i++) {
		const uint32_t stack = view->rows[i].key.stack;

		all += bytes_of_row(view, &view->rows[i]);
		if (stack != UINT32_MAX && symbolizer_is_stripped(symbolizer, stack))
			nameless += bytes_of_row(view, &view->rows[i]);
	}
	unseen_add_stripped(&texts, &unseen->facts, nameless, all);
	for (size_t i = 0; i < texts.count; i++)
		profile_add_comment(profile, unseen_line(&texts.texts[i], line));
}
