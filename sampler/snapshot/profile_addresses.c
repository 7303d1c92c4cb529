/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of all mappings cut the address space into segments. Mappings take the segments that are still
 * free, in the order in which they were seen; adjacent segments of the same file make one range. If the
 * segment of a frame belongs to another mapping, the frame's whole mapping is moved.
 *
 * Time is M log M in the number of mappings: a hostile target can have millions of them, one for each wild
 * pc.
 */
#include "sampler/snapshot/profile_addresses.h"

#include <stdlib.h>
#include <string.h>

enum { NOBODY = UINT32_MAX, RESERVED = UINT32_MAX - 1, PAGE = 4096 };

struct profile_addresses {
	const struct stacks *stacks;
	uint64_t *cuts;  /* sorted; segment i is [cuts[i], cuts[i + 1]) */
	uint32_t *owner; /* of a segment: number of a mapping; later, of a range */
	uint32_t *next;  /* the first segment from this one on that may be free */
	uint32_t segments;
	struct profile_addresses_range *ranges;
	uint32_t count;
	uint32_t *moved; /* ranges by mapping; NOBODY: not moved */
	uint64_t moved_end;
};

static uint64_t end_of(const struct stack_mapping *m)
{
	return m->end > m->start ? m->end : UINT64_MAX; /* the last page's end wraps */
}

static bool is_empty(const struct stack_mapping *m)
{
	return !m->start && !m->end; /* the markers' */
}

/* Code in no file is identified by its address alone; its offset depends on the source that reported it. */
static bool is_same(const struct stack_mapping *a, const struct stack_mapping *b)
{
	return a->module == b->module && a->kind == b->kind &&
	    (!a->module || a->start - a->file_offset == b->start - b->file_offset);
}

static int compare_cuts(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void cut(struct profile_addresses *l)
{
	uint32_t mappings = stacks_mapping_count(l->stacks), count = 0, kept = 1;

	l->cuts[count++] = 0;
	l->cuts[count++] = PROFILE_ADDRESSES_RESERVED_START;
	l->cuts[count++] = PROFILE_ADDRESSES_RESERVED_END;
	l->cuts[count++] = PROFILE_MOVED_START;
	l->cuts[count++] = PROFILE_MOVED_END;
	l->cuts[count++] = UINT64_MAX;
	for (uint32_t i = 0; i < mappings; i++) {
		const struct stack_mapping *m = stacks_mapping(l->stacks, i);

		if (is_empty(m))
			continue;
		l->cuts[count++] = m->start;
		l->cuts[count++] = end_of(m);
	}
	qsort(l->cuts, count, sizeof(*l->cuts), compare_cuts);
	for (uint32_t i = 1; i < count; i++)
		if (l->cuts[i] != l->cuts[kept - 1])
			l->cuts[kept++] = l->cuts[i];
	l->segments = kept - 1;
}

/* The segment that ADDRESS is in, the last one for the last address of all. */
static uint32_t segment_of(const struct profile_addresses *l, uint64_t address)
{
	uint32_t low = 0, high = l->segments;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (l->cuts[middle] <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint32_t free_from(struct profile_addresses *l, uint32_t segment)
{
	uint32_t end = segment;

	while (l->next[end] != end)
		end = l->next[end];
	while (l->next[segment] != end) {
		uint32_t after = l->next[segment];

		l->next[segment] = end;
		segment = after;
	}
	return end;
}

static void take(struct profile_addresses *l, uint64_t start, uint64_t end, uint32_t owner)
{
	for (uint32_t i = free_from(l, segment_of(l, start)); i < l->segments && l->cuts[i] < end;
	     i = free_from(l, i)) {
		l->owner[i] = owner;
		l->next[i] = i + 1;
	}
}

static void take_all(struct profile_addresses *l)
{
	uint32_t mappings = stacks_mapping_count(l->stacks), kernel = RESERVED;

	for (uint32_t i = 0; i <= l->segments; i++) {
		l->owner[i] = NOBODY;
		l->next[i] = i;
	}
	for (uint32_t i = 0; i < mappings && kernel == RESERVED; i++)
		if (stacks_mapping(l->stacks, i)->kind == MAP_KIND_KERNEL)
			kernel = i;
	take(l, PROFILE_ADDRESSES_RESERVED_START, PROFILE_ADDRESSES_RESERVED_END, RESERVED);
	take(l, PROFILE_MOVED_START, PROFILE_MOVED_END, RESERVED);
	/* The kernel's mapping is never moved, not even if a wild pc was there first. */
	take(l, MAP_KERNEL_START, UINT64_MAX, kernel);
	for (uint32_t i = 0; i < mappings; i++) {
		const struct stack_mapping *m = stacks_mapping(l->stacks, i);

		if (!is_empty(m))
			take(l, m->start, end_of(m), i);
	}
}

/* Makes ranges of segments; owner[] is numbers of ranges from here on. */
static void join(struct profile_addresses *l)
{
	const struct stack_mapping *before = NULL;

	for (uint32_t i = 0; i < l->segments; i++) {
		if (l->owner[i] >= RESERVED) {
			l->owner[i] = NOBODY;
			before = NULL;
			continue;
		}
		const struct stack_mapping *m = stacks_mapping(l->stacks, l->owner[i]);
		if (!before || !is_same(before, m))
			l->ranges[l->count++] = (struct profile_addresses_range){
			    .start = l->cuts[i],
			    .file_offset = m->file_offset + (l->cuts[i] - m->start),
			    .mapping = l->owner[i],
			};
		l->ranges[l->count - 1].limit = l->cuts[i + 1];
		l->owner[i] = l->count - 1;
		before = m;
	}
}

static bool in_place(const struct profile_addresses *l, const struct stack_frame *frame, uint32_t *range)
{
	*range = l->owner[segment_of(l, frame->pc)];
	return *range != NOBODY &&
	    is_same(stacks_mapping(l->stacks, l->ranges[*range].mapping),
	        stacks_mapping(l->stacks, frame->mapping));
}

static void move(struct profile_addresses *l, uint32_t mapping)
{
	const struct stack_mapping *m = stacks_mapping(l->stacks, mapping);
	uint64_t bytes = end_of(m) - m->start, start = l->moved_end + m->start % PAGE;

	/* A page in between, so that no reader joins two ranges. The check is needed because the lists of
	 * hostile targets can hold anything. */
	if (start > PROFILE_MOVED_END - 3 * PAGE || bytes > PROFILE_MOVED_END - 3 * PAGE - start)
		return;
	l->moved[mapping] = l->count;
	l->ranges[l->count++] =
	    (struct profile_addresses_range){start, start + bytes, m->file_offset, mapping};
	l->moved_end = (start + bytes + 2 * PAGE - 1) / PAGE * PAGE;
}

static void move_all(struct profile_addresses *l)
{
	uint32_t range;

	for (uint32_t i = 0; i < stacks_mapping_count(l->stacks); i++)
		l->moved[i] = NOBODY;
	l->moved_end = PROFILE_MOVED_START;
	/* In the order of frames, used by this snapshot or not: see profile_addresses.h. */
	for (uint32_t i = 0; i < stacks_frame_count(l->stacks); i++) {
		const struct stack_frame *frame = stacks_frame(l->stacks, i);

		if (!frame->marker && l->moved[frame->mapping] == NOBODY && !in_place(l, frame, &range))
			move(l, frame->mapping);
	}
}

struct profile_addresses *profile_addresses_new(const struct stacks *stacks)
{
	struct profile_addresses *l = calloc(1, sizeof(*l));
	size_t mappings = stacks_mapping_count(stacks), cuts = 6 + 2 * mappings;

	if (!l)
		return NULL;
	l->stacks = stacks;
	l->cuts = malloc(cuts * sizeof(*l->cuts));
	l->owner = malloc(cuts * sizeof(*l->owner));
	l->next = malloc(cuts * sizeof(*l->next));
	l->ranges = malloc((cuts + mappings) * sizeof(*l->ranges));
	l->moved = malloc((mappings + 1) * sizeof(*l->moved));
	if (!l->cuts || !l->owner || !l->next || !l->ranges || !l->moved) {
		profile_addresses_free(l);
		return NULL;
	}
	cut(l);
	take_all(l);
	join(l);
	move_all(l);
	return l;
}

void profile_addresses_free(struct profile_addresses *l)
{
	if (!l)
		return;
	free(l->cuts);
	free(l->owner);
	free(l->next);
	free(l->ranges);
	free(l->moved);
	free(l);
}

bool profile_addresses_find(
    const struct profile_addresses *l, uint32_t number, uint32_t *range, uint64_t *address)
{
	const struct stack_frame *frame = stacks_frame(l->stacks, number);

	*address = frame->pc;
	if (!in_place(l, frame, range)) {
		*range = l->moved[frame->mapping];
		if (*range == NOBODY)
			return false;
		*address += l->ranges[*range].start - stacks_mapping(l->stacks, frame->mapping)->start;
	}
	/* Readers take address 0 for "no address", and the highest address of all is in no range. */
	if (*address >= l->ranges[*range].limit)
		*address = l->ranges[*range].limit - 1;
	*address += !*address;
	return true;
}

uint32_t profile_addresses_count(const struct profile_addresses *l)
{
	return l->count;
}

const struct profile_addresses_range *profile_addresses_range(
    const struct profile_addresses *l, uint32_t range)
{
	return &l->ranges[range];
}

bool profile_addresses_overlaps(const struct profile_addresses *l, uint64_t start, uint64_t limit)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->ranges[i].start < limit && l->ranges[i].limit > start)
			return true;
	return false;
}
