/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of all mappings cut the address space into segments. Mappings take the segments that are still
 * free, in the order in which they were seen; adjacent segments of the same file make one range. If the
 * segment of a frame belongs to another mapping, the frame's whole mapping is moved.
 *
 * Time is M log M in the number of mappings: a hostile target can have millions of them, one for each wild
 * pc.
 */
#include "sampler/write/profile_mappings.h"

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

static void cut(struct profile_addresses *addresses)
{
	uint32_t mappings = stacks_mapping_count(addresses->stacks), count = 0, kept = 1;

	addresses->cuts[count++] = 0;
	addresses->cuts[count++] = PROFILE_ADDRESSES_RESERVED_START;
	addresses->cuts[count++] = PROFILE_ADDRESSES_RESERVED_END;
	addresses->cuts[count++] = PROFILE_MOVED_START;
	addresses->cuts[count++] = PROFILE_MOVED_END;
	addresses->cuts[count++] = UINT64_MAX;
	for (uint32_t i = 0; i < mappings; i++) {
		const struct stack_mapping *m = stacks_mapping(addresses->stacks, i);

		if (is_empty(m))
			continue;
		addresses->cuts[count++] = m->start;
		addresses->cuts[count++] = end_of(m);
	}
	qsort(addresses->cuts, count, sizeof(*addresses->cuts), compare_cuts);
	for (uint32_t i = 1; i < count; i++)
		if (addresses->cuts[i] != addresses->cuts[kept - 1])
			addresses->cuts[kept++] = addresses->cuts[i];
	addresses->segments = kept - 1;
}

/* The segment that ADDRESS is in, the last one for the last address of all. */
static uint32_t segment_of(const struct profile_addresses *addresses, uint64_t address)
{
	uint32_t low = 0, high = addresses->segments;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (addresses->cuts[middle] <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint32_t free_from(struct profile_addresses *addresses, uint32_t segment)
{
	uint32_t end = segment;

	while (addresses->next[end] != end)
		end = addresses->next[end];
	while (addresses->next[segment] != end) {
		uint32_t after = addresses->next[segment];

		addresses->next[segment] = end;
		segment = after;
	}
	return end;
}

static void take(struct profile_addresses *addresses, uint64_t start, uint64_t end, uint32_t owner)
{
	for (uint32_t i = free_from(addresses, segment_of(addresses, start));
	     i < addresses->segments && addresses->cuts[i] < end; i = free_from(addresses, i)) {
		addresses->owner[i] = owner;
		addresses->next[i] = i + 1;
	}
}

static void take_all(struct profile_addresses *addresses)
{
	uint32_t mappings = stacks_mapping_count(addresses->stacks), kernel = RESERVED;

	for (uint32_t i = 0; i <= addresses->segments; i++) {
		addresses->owner[i] = NOBODY;
		addresses->next[i] = i;
	}
	for (uint32_t i = 0; i < mappings && kernel == RESERVED; i++)
		if (stacks_mapping(addresses->stacks, i)->kind == MAP_KIND_KERNEL)
			kernel = i;
	take(addresses, PROFILE_ADDRESSES_RESERVED_START, PROFILE_ADDRESSES_RESERVED_END, RESERVED);
	take(addresses, PROFILE_MOVED_START, PROFILE_MOVED_END, RESERVED);
	/* The kernel's mapping is never moved, not even if a wild pc was there first. */
	take(addresses, MAP_KERNEL_START, UINT64_MAX, kernel);
	for (uint32_t i = 0; i < mappings; i++) {
		const struct stack_mapping *m = stacks_mapping(addresses->stacks, i);

		if (!is_empty(m))
			take(addresses, m->start, end_of(m), i);
	}
}

/* Makes ranges of segments; owner[] is numbers of ranges from here on. */
static void join(struct profile_addresses *addresses)
{
	const struct stack_mapping *before = NULL;

	for (uint32_t i = 0; i < addresses->segments; i++) {
		if (addresses->owner[i] >= RESERVED) {
			addresses->owner[i] = NOBODY;
			before = NULL;
			continue;
		}
		const struct stack_mapping *m = stacks_mapping(addresses->stacks, addresses->owner[i]);
		if (!before || !is_same(before, m))
			addresses->ranges[addresses->count++] = (struct profile_addresses_range){
			    .start = addresses->cuts[i],
			    .file_offset = m->file_offset + (addresses->cuts[i] - m->start),
			    .mapping = addresses->owner[i],
			};
		addresses->ranges[addresses->count - 1].limit = addresses->cuts[i + 1];
		addresses->owner[i] = addresses->count - 1;
		before = m;
	}
}

static bool in_place(
    const struct profile_addresses *addresses, const struct stack_frame *frame, uint32_t *range)
{
	*range = addresses->owner[segment_of(addresses, frame->pc)];
	return *range != NOBODY &&
	    is_same(stacks_mapping(addresses->stacks, addresses->ranges[*range].mapping),
	        stacks_mapping(addresses->stacks, frame->mapping));
}

static void move(struct profile_addresses *addresses, uint32_t mapping)
{
	const struct stack_mapping *m = stacks_mapping(addresses->stacks, mapping);
	uint64_t bytes = end_of(m) - m->start, start = addresses->moved_end + m->start % PAGE;

	/* A page in between, so that no reader joins two ranges. The check is needed because the lists of
	 * hostile targets can hold anything. */
	if (start > PROFILE_MOVED_END - 3 * PAGE || bytes > PROFILE_MOVED_END - 3 * PAGE - start)
		return;
	addresses->moved[mapping] = addresses->count;
	addresses->ranges[addresses->count++] =
	    (struct profile_addresses_range){start, start + bytes, m->file_offset, mapping};
	addresses->moved_end = (start + bytes + 2 * PAGE - 1) / PAGE * PAGE;
}

static void move_all(struct profile_addresses *addresses)
{
	uint32_t range;

	for (uint32_t i = 0; i < stacks_mapping_count(addresses->stacks); i++)
		addresses->moved[i] = NOBODY;
	addresses->moved_end = PROFILE_MOVED_START;
	/* In the order of frames, used by this snapshot or not: see profile_mappings.h. */
	for (uint32_t i = 0; i < stacks_frame_count(addresses->stacks); i++) {
		const struct stack_frame *frame = stacks_frame(addresses->stacks, i);

		if (!frame->marker && addresses->moved[frame->mapping] == NOBODY &&
		    !in_place(addresses, frame, &range))
			move(addresses, frame->mapping);
	}
}

struct profile_addresses *profile_addresses_new(const struct stacks *stacks)
{
	struct profile_addresses *addresses = calloc(1, sizeof(*addresses));
	size_t mappings = stacks_mapping_count(stacks), cuts = 6 + 2 * mappings;

	if (!addresses)
		return NULL;
	addresses->stacks = stacks;
	addresses->cuts = malloc(cuts * sizeof(*addresses->cuts));
	addresses->owner = malloc(cuts * sizeof(*addresses->owner));
	addresses->next = malloc(cuts * sizeof(*addresses->next));
	addresses->ranges = malloc((cuts + mappings) * sizeof(*addresses->ranges));
	addresses->moved = malloc((mappings + 1) * sizeof(*addresses->moved));
	if (!addresses->cuts || !addresses->owner || !addresses->next || !addresses->ranges ||
	    !addresses->moved) {
		profile_addresses_free(addresses);
		return NULL;
	}
	cut(addresses);
	take_all(addresses);
	join(addresses);
	move_all(addresses);
	return addresses;
}

void profile_addresses_free(struct profile_addresses *addresses)
{
	if (!addresses)
		return;
	free(addresses->cuts);
	free(addresses->owner);
	free(addresses->next);
	free(addresses->ranges);
	free(addresses->moved);
	free(addresses);
}

bool profile_addresses_find(
    const struct profile_addresses *addresses, uint32_t number, uint32_t *range, uint64_t *address)
{
	const struct stack_frame *frame = stacks_frame(addresses->stacks, number);

	*address = frame->pc;
	if (!in_place(addresses, frame, range)) {
		*range = addresses->moved[frame->mapping];
		if (*range == NOBODY)
			return false;
		*address += addresses->ranges[*range].start -
		    stacks_mapping(addresses->stacks, frame->mapping)->start;
	}
	/* Readers take address 0 for "no address", and the highest address of all is in no range. */
	if (*address >= addresses->ranges[*range].limit)
		*address = addresses->ranges[*range].limit - 1;
	*address += !*address;
	return true;
}

uint32_t profile_addresses_count(const struct profile_addresses *addresses)
{
	return addresses->count;
}

const struct profile_addresses_range *profile_addresses_range(
    const struct profile_addresses *addresses, uint32_t range)
{
	return &addresses->ranges[range];
}

bool profile_addresses_overlaps(const struct profile_addresses *addresses, uint64_t start, uint64_t limit)
{
	for (uint32_t i = 0; i < addresses->count; i++)
		if (addresses->ranges[i].start < limit && addresses->ranges[i].limit > start)
			return true;
	return false;
}
