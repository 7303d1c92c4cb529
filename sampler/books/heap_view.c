/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/heap_view.h"

#include "pprof/table/array.h"
#include "sampler/books/lifetime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { AGES = LIFETIME_CLASSES + 1 }; /* plus one for blocks without an age */

struct making {
	const struct heap *heap;
	struct heap_view *view;
	uint32_t sites;
	uint32_t ages;     /* 1 or AGES */
	uint32_t *row_of;  /* by site, inherited and age: row + 1 */
	struct tally lost; /* in use, allocated by the process itself, without a stack */
};

static struct heap_view_row *row_for(struct making *m, uint32_t site, bool inherited, uint32_t age)
{
	struct heap_view *view = m->view;
	size_t at = site == HEAP_NO_SITE ? m->sites : site;

	at = (at * 2 + inherited) * m->ages + (m->ages == 1 || age == HEAP_VIEW_NO_AGE ? 0 : age + 1);
	if (m->row_of[at])
		return &view->rows[m->row_of[at] - 1];
	if (array_reserve(&view->rows, &view->capacity, view->count + 1, sizeof(*view->rows)) != 0)
		return NULL;
	struct heap_view_row row = {.key.stack = UINT32_MAX,
	    .key.origin = inherited ? HEAP_ORIGIN_UNKNOWN : HEAP_ORIGIN_SELF,
	    .age = age,
	    .inherited = inherited};
	if (site != HEAP_NO_SITE)
		row.key = heap_site(m->heap, site)->key;
	view->rows[view->count] = row;
	m->row_of[at] = (uint32_t)++view->count;
	return &view->rows[view->count - 1];
}

static void estimate_add(struct heap_estimate *estimate, struct weight weight)
{
	estimate->samples++;
	estimate->bytes += (double)weight.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
	estimate->objects += (double)weight.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT);
	estimate->bytes_variance += weight.bytes_variance;
	estimate->objects_variance += weight.objects_variance;
}

static int add_block(struct making *m, const struct live_scan_block *block, uint64_t at_ns)
{
	const struct slot_copy *slot = &block->slot;
	struct heap_view *view = m->view;
	bool inherited = slot->flags & SLOT_INHERITED;
	uint32_t site = heap_site_of_slot(m->heap, block->number, slot), age = HEAP_VIEW_NO_AGE;

	if (m->ages > 1)
		age = lifetime_class(at_ns > slot->sample.time_ns ? at_ns - slot->sample.time_ns : 0);
	struct heap_view_row *row = row_for(m, site, inherited, age);
	if (!row)
		return -ENOMEM;
	struct weight weight = region_weight(slot);
	tally_count(&row->inuse, weight);
	estimate_add(&view->inuse, weight);
	if (inherited)
		estimate_add(&view->inherited, weight);
	if (site == HEAP_NO_SITE)
		estimate_add(&view->lost_inuse, weight);
	if (site == HEAP_NO_SITE && inherited)
		view->lost_inherited++;
	if (site == HEAP_NO_SITE && !inherited)
		tally_count(&m->lost, weight);
	return 0;
}

static bool is_wanted(enum heap_view_kind kind, const struct live_scan_block *block, uint64_t since_ns)
{
	if (kind == HEAP_VIEW_PEAK)
		return block->peak;
	return block->live &&
	    (kind == HEAP_VIEW_LIVE ||
	        (block->slot.sample.time_ns >= since_ns && !(block->slot.flags & SLOT_INHERITED)));
}

static struct heap_estimate estimate_of(struct tally sums)
{
	return (struct heap_estimate){
	    .samples = sums.samples,
	    .bytes = (double)sums.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT),
	    .objects = (double)sums.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT),
	};
}

static int add_alloc(struct making *m, uint32_t site, struct tally sums)
{
	if (!sums.samples)
		return 0;
	struct heap_view_row *row = row_for(m, site, false, HEAP_VIEW_NO_AGE);
	if (!row)
		return -ENOMEM;
	row->alloc = sums;
	return 0;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
	return value > least ? value : least;
}

/* Raises what was allocated to at least what is in use, since that was allocated too. The counts of the
 * process may be lower. For lost blocks they were read before the slots, or samples that arrived later
 * have hidden the difference. For walked blocks the target writes any count it likes. */
static struct tally alloc_at_least(struct tally alloc, struct tally inuse)
{
	return (struct tally){at_least(alloc.samples, inuse.samples),
	    at_least(alloc.bytes_q8, inuse.bytes_q8), at_least(alloc.objects_q16, inuse.objects_q16)};
}

static uint64_t take_up_to(uint64_t *from, uint64_t wanted)
{
	uint64_t taken = wanted < *from ? wanted : *from;

	*from -= taken;
	return taken;
}

/* Moves the blocks of a site that were freed soon into a row of its own. */
static int add_temporary(struct making *m, uint32_t site, const struct tally *temporary)
{
	struct heap_view *view = m->view;
	struct heap_view_row *rest = row_for(m, site, false, HEAP_VIEW_NO_AGE);

	if (!rest || array_reserve(&view->rows, &view->capacity, view->count + 1, sizeof(*view->rows)) != 0)
		return -ENOMEM;
	rest = row_for(m, site, false, HEAP_VIEW_NO_AGE); /* the rows may have moved */
	struct heap_view_row row = {.key = rest->key, .age = HEAP_VIEW_NO_AGE, .temporary = true};
	row.alloc.samples = take_up_to(&rest->alloc.samples, temporary->samples);
	row.alloc.bytes_q8 = take_up_to(&rest->alloc.bytes_q8, temporary->bytes_q8);
	row.alloc.objects_q16 = take_up_to(&rest->alloc.objects_q16, temporary->objects_q16);
	view->rows[view->count++] = row;
	return 0;
}

static int add_allocated(struct making *m, bool delta, struct tally counted)
{
	struct tally all = {0}, lost = heap_lost(m->heap, counted);
	int error = 0;

	if (delta)
		lost = heap_whole(tally_excess(&lost, &heap_last_mark(m->heap)->lost));
	lost = alloc_at_least(lost, m->lost);
	for (uint32_t i = 0; i < m->sites && !error; i++) {
		struct tally sums = heap_site(m->heap, i)->sums, marked = heap_site_marked(m->heap, i);
		const struct tally temporary = heap_site_temporary(m->heap, i);

		if (delta)
			sums = tally_excess(&sums, &marked);
		tally_add(&all, &sums);
		error = add_alloc(m, i, sums);
		if (!error && !delta && temporary.samples)
			error = add_temporary(m, i, &temporary);
	}
	if (!error)
		error = add_alloc(m, HEAP_NO_SITE, lost);
	tally_add(&all, &lost);
	m->view->allocated = estimate_of(all);
	m->view->lost_alloc = estimate_of(lost);
	return error;
}

/* With ages, splits the allocations of a site into the live blocks, by age, and the freed ones, which have
 * no age. */
static int share_out(struct making *m)
{
	for (uint32_t site = 0; site <= m->sites; site++)
		for (uint32_t age = 0; age + 1 < m->ages; age++) {
			uint32_t at = m->row_of[site * 2 * m->ages + age + 1];

			if (!at)
				continue;
			struct heap_view_row *rest =
			    row_for(m, site == m->sites ? HEAP_NO_SITE : site, false, HEAP_VIEW_NO_AGE);
			if (!rest)
				return -ENOMEM;
			struct heap_view_row *row = &m->view->rows[at - 1];
			row->alloc.samples = take_up_to(&rest->alloc.samples, row->inuse.samples);
			row->alloc.bytes_q8 = take_up_to(&rest->alloc.bytes_q8, row->inuse.bytes_q8);
			row->alloc.objects_q16 = take_up_to(&rest->alloc.objects_q16, row->inuse.objects_q16);
		}
	return 0;
}

static void raise_alloc(struct heap_view *view)
{
	for (size_t i = 0; i < view->count; i++)
		if (!view->rows[i].inherited)
			view->rows[i].alloc = alloc_at_least(view->rows[i].alloc, view->rows[i].inuse);
}

int heap_view_make(struct heap_view *view, enum heap_view_kind kind, const struct heap *heap,
    const struct live_scan *live_scan)
{
	memset(view, 0, sizeof(*view));
	struct making m = {.heap = heap, .view = view, .sites = heap_site_count(heap)};
	m.ages = heap_options(heap)->labels & HEAP_LABEL_AGE ? AGES : 1;
	m.row_of = calloc(((size_t)m.sites + 1) * 2 * m.ages, sizeof(*m.row_of));
	if (!m.row_of)
		return -ENOMEM;
	uint64_t since_ns = heap_last_mark(heap)->time_ns;
	uint64_t at_ns = kind == HEAP_VIEW_PEAK ? live_scan->peak_ns : live_scan->now_ns;
	int error = 0;
	for (size_t i = 0; i < live_scan->count && !error; i++)
		if (is_wanted(kind, &live_scan->blocks[i], since_ns))
			error = add_block(&m, &live_scan->blocks[i], at_ns);
	if (!error)
		error = add_allocated(&m, kind == HEAP_VIEW_DELTA, live_scan->counted);
	if (!error)
		error = share_out(&m);
	if (!error)
		raise_alloc(view);
	free(m.row_of);
	if (error)
		heap_view_fini(view);
	return error;
}

void heap_view_fini(struct heap_view *view)
{
	free(view->rows);
	view->rows = NULL;
	view->count = view->capacity = 0;
}
