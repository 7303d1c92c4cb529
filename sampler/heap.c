/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct site {
	uint64_t samples, bytes_q8, objects_q16;
};

/* The last two samples of a slot: a forked child may ask for one that its parent's slot has since moved on from. */
struct slot_memory {
	uint64_t seq_plus_1, before_plus_1;
	uint32_t stack, before_stack;
};

struct heap {
	uint32_t segments;
	struct slot_memory **memory; /* by segment, made when first needed */
	struct site *sites;          /* by stack */
	uint32_t site_room;
	struct site total;           /* of all sites */
};

struct heap *heap_new(uint32_t segments)
{
	struct heap *heap = calloc(1, sizeof(*heap));
	if (!heap)
		return NULL;
	heap->segments = segments;
	heap->memory = calloc(segments, sizeof(*heap->memory));
	if (!heap->memory) {
		free(heap);
		return NULL;
	}
	return heap;
}

void heap_free(struct heap *heap)
{
	if (!heap)
		return;
	for (uint32_t i = 0; i < heap->segments; i++)
		free(heap->memory[i]);
	free(heap->memory);
	free(heap->sites);
	free(heap);
}

static struct slot_memory *memory_of(const struct heap *heap, uint32_t slot)
{
	uint32_t segment = slot / REGION_SEGMENT_SLOTS;
	if (segment >= heap->segments || !heap->memory[segment])
		return NULL;
	return &heap->memory[segment][slot % REGION_SEGMENT_SLOTS];
}

/* False for a sample that is there already. */
static bool remember(struct heap *heap, uint32_t slot, uint64_t seq, uint32_t stack)
{
	uint32_t segment = slot / REGION_SEGMENT_SLOTS;
	if (segment >= heap->segments)
		return true; /* has no slot: counted, not remembered */
	if (!heap->memory[segment])
		heap->memory[segment] = calloc(REGION_SEGMENT_SLOTS, sizeof(struct slot_memory));
	struct slot_memory *memory = memory_of(heap, slot);
	if (!memory)
		return true;
	if (memory->seq_plus_1 == seq + 1 || memory->before_plus_1 == seq + 1)
		return false;
	if (seq + 1 > memory->seq_plus_1) {
		memory->before_plus_1 = memory->seq_plus_1;
		memory->before_stack = memory->stack;
		memory->seq_plus_1 = seq + 1;
		memory->stack = stack;
	} else if (seq + 1 > memory->before_plus_1) { /* late, from another CPU's ring */
		memory->before_plus_1 = seq + 1;
		memory->before_stack = stack;
	}
	return true;
}

uint32_t heap_stack_of(const struct heap *heap, uint32_t slot, uint64_t seq)
{
	const struct slot_memory *memory = memory_of(heap, slot);
	if (memory && memory->seq_plus_1 == seq + 1)
		return memory->stack;
	if (memory && memory->before_plus_1 == seq + 1)
		return memory->before_stack;
	return UINT32_MAX;
}

static struct site *site_of(struct heap *heap, uint32_t stack)
{
	if (stack >= heap->site_room) {
		uint32_t room = heap->site_room ? heap->site_room : 256;
		while (room <= stack)
			room *= 2;
		struct site *grown = realloc(heap->sites, room * sizeof(*grown));
		if (!grown)
			return NULL;
		memset(grown + heap->site_room, 0, (room - heap->site_room) * sizeof(*grown));
		heap->sites = grown;
		heap->site_room = room;
	}
	return &heap->sites[stack];
}

static void site_add(struct site *site, struct weight weight)
{
	site->samples++;
	site->bytes_q8 += weight.bytes_q8;
	site->objects_q16 += weight.objects_q16;
}

bool heap_add(struct heap *heap, uint32_t slot, uint64_t seq, uint32_t stack, struct weight weight)
{
	struct site *site = site_of(heap, stack);
	if (!site || !remember(heap, slot, seq, stack))
		return false;
	site_add(site, weight);
	site_add(&heap->total, weight);
	return true;
}

void heap_inherit(struct heap *heap, uint32_t slot, uint64_t seq, uint32_t stack)
{
	if (site_of(heap, stack))
		remember(heap, slot, seq, stack);
}

/* ---- reading */

static void estimate_add(struct heap_estimate *estimate, uint64_t size_bytes, uint64_t period_bytes)
{
	struct weight weight = weight_of(size_bytes, period_bytes);
	estimate->samples++;
	estimate->bytes += (double)weight.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT);
	estimate->objects += (double)weight.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT);
	estimate->bytes_variance += (double)weight.variance * (1 << WEIGHT_VARIANCE_SHIFT);
	estimate->objects_variance += (double)weight.objects_variance;
}

struct reading {
	const struct heap *heap;
	struct heap_view *view;
	uint32_t rooms;
	uint32_t *row_of; /* by stack * 2 + inherited: row + 1 */
	uint32_t stacks;
};

static struct heap_row *row_for(struct reading *reading, uint32_t stack, bool inherited)
{
	struct heap_view *view = reading->view;
	size_t at = (stack == UINT32_MAX ? reading->stacks : stack) * (size_t)2 + inherited;
	if (reading->row_of[at])
		return &view->rows[reading->row_of[at] - 1];
	if (view->count == reading->rooms) {
		uint32_t rooms = reading->rooms ? reading->rooms * 2 : 64;
		struct heap_row *grown = realloc(view->rows, rooms * sizeof(*grown));
		if (!grown)
			return NULL;
		view->rows = grown;
		reading->rooms = rooms;
	}
	view->rows[view->count] = (struct heap_row){.stack = stack, .inherited = inherited};
	reading->row_of[at] = (uint32_t)++view->count;
	return &view->rows[view->count - 1];
}

static int read_slot(struct reading *reading, uint32_t number, const struct slot_copy *slot)
{
	struct heap_view *view = reading->view;
	bool inherited = slot->flags & SLOT_INHERITED;
	uint32_t stack = heap_stack_of(reading->heap, number, slot->seq);
	if (stack >= reading->stacks)
		stack = UINT32_MAX;
	struct heap_row *row = row_for(reading, stack, inherited);
	if (!row)
		return -ENOMEM;
	struct weight weight = weight_of(slot->size_bytes, slot->period_bytes);
	row->inuse_samples++;
	row->inuse_bytes_q8 += weight.bytes_q8;
	row->inuse_objects_q16 += weight.objects_q16;
	estimate_add(&view->inuse, slot->size_bytes, slot->period_bytes);
	if (inherited)
		estimate_add(&view->inherited, slot->size_bytes, slot->period_bytes);
	if (stack == UINT32_MAX)
		estimate_add(&view->lost_inuse, slot->size_bytes, slot->period_bytes);
	return 0;
}

static int read_slots(struct reading *reading, const struct region *region, uint32_t place)
{
	for (uint32_t s = 0; s < region->segments; s++) {
		if (region_segment_owner(region, s) != (int)place)
			continue;
		for (uint32_t i = 0; i < REGION_SEGMENT_SLOTS; i++) {
			struct slot_copy slot;
			uint32_t number = s * REGION_SEGMENT_SLOTS + i;
			if (!region_read_slot(region, number, &slot))
				continue;
			int error = read_slot(reading, number, &slot);
			if (error)
				return error;
		}
	}
	return 0;
}

static struct heap_estimate estimate_of(struct site site)
{
	return (struct heap_estimate){
	    .samples = site.samples,
	    .bytes = (double)site.bytes_q8 / (1 << WEIGHT_BYTES_SHIFT),
	    .objects = (double)site.objects_q16 / (1 << WEIGHT_OBJECTS_SHIFT),
	};
}

static int read_sites(struct reading *reading, const struct region *region, uint32_t place)
{
	const struct heap *heap = reading->heap;
	for (uint32_t stack = 0; stack < heap->site_room; stack++) {
		const struct site *site = &heap->sites[stack];
		if (!site->samples)
			continue;
		struct heap_row *row = row_for(reading, stack, false);
		if (!row)
			return -ENOMEM;
		row->alloc_samples = site->samples;
		row->alloc_bytes_q8 = site->bytes_q8;
		row->alloc_objects_q16 = site->objects_q16;
	}
	/* What the process counted and we did not get. Differences modulo 2^64, and never below zero: a sample may
	 * have come while we read, and a hostile process may have written anything. */
	struct tally counted = region_read_tally(&region_place(region, place)->allocated);
	struct site all = {counted.samples, counted.bytes_q8, counted.objects_q16};
	struct site lost = {counted.samples - heap->total.samples, counted.bytes_q8 - heap->total.bytes_q8,
	    counted.objects_q16 - heap->total.objects_q16};
	if ((int64_t)lost.samples < 0 || (int64_t)lost.bytes_q8 < 0 || (int64_t)lost.objects_q16 < 0) {
		lost = (struct site){0};
		all = heap->total;
	}
	reading->view->allocated = estimate_of(all);
	reading->view->lost_alloc = estimate_of(lost);
	if (!lost.samples)
		return 0;
	struct heap_row *row = row_for(reading, UINT32_MAX, false);
	if (!row)
		return -ENOMEM;
	row->alloc_samples = lost.samples;
	row->alloc_bytes_q8 = lost.bytes_q8;
	row->alloc_objects_q16 = lost.objects_q16;
	return 0;
}

int heap_read(const struct heap *heap, const struct region *region, uint32_t place, struct heap_view *view)
{
	memset(view, 0, sizeof(*view));
	if (!region_place(region, place))
		return -EINVAL;
	struct reading reading = {.heap = heap, .view = view, .stacks = heap->site_room};
	reading.row_of = calloc(((size_t)heap->site_room + 1) * 2, sizeof(*reading.row_of));
	if (!reading.row_of)
		return -ENOMEM;
	int error = read_slots(&reading, region, place);
	if (!error)
		error = read_sites(&reading, region, place);
	free(reading.row_of);
	if (error)
		free(view->rows);
	return error;
}
