/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/tables.h"

#include "preload/last_level.h"
#include "preload/live.h"
#include "preload/lock_all.h"
#include "preload/mapping.h"
#include "preload/memory.h"
#include "preload/session.h"
#include "preload/slot.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
	MAPPING_SAMPLES = 16384, /* have slots too */
	SEGMENTS_MORE = 16,      /* threads may take a segment each at the same moment */
};

/* [0]: live.h and slot.h, and mapping.h if it was wished for then. [1]: mapping.h alone. */
static struct {
	unsigned char *start;
	uint64_t bytes;      /* 0: nothing */
	uint64_t kept_bytes; /* that tables_close leaves readable; whole pages */
} parts[2];

static uint64_t whole_pages(uint64_t bytes)
{
	const uint64_t page = getauxval(AT_PAGESZ);

	return page ? (bytes + page - 1) / page * page : bytes;
}

/* A process takes another segment when half of its slots are in use (slot.c). With more than one level the
 * tables may grow: then there are notes about every segment. */
static uint32_t segments_for(const struct live_size *size, uint32_t of_region)
{
	const uint32_t wanted =
	    2 * (live_size_samples(size) + MAPPING_SAMPLES) / REGION_SEGMENT_SLOTS + SEGMENTS_MORE;

	return size->levels == 1 && wanted < of_region ? wanted : of_region;
}

/* Of private memory an eighth of the limit. */
static unsigned char *map(uint64_t bytes, bool may_advise)
{
	if (!session_affordable(RLIMIT_AS, 2 * bytes) || !session_affordable(RLIMIT_DATA, 2 * bytes))
		return NULL;
	void *memory = memory_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (memory && may_advise) {
		madvise(memory, bytes, MADV_NOHUGEPAGE); /* one touched byte must not take 2 MiB */
		madvise(memory, bytes, MADV_DONTDUMP);
	}
	return memory;
}

static bool open_mappings(bool may_advise)
{
	const uint64_t bytes = whole_pages(mapping_bytes());
	unsigned char *memory = map(bytes, may_advise);

	if (!memory)
		return false;
	parts[1].start = memory;
	parts[1].bytes = parts[1].kept_bytes = bytes;
	mapping_open(memory);
	lock_all_leave_out(LOCK_ALL_MAPPINGS, memory, bytes);
	return true;
}

static bool open_with(const struct live_size *size, const struct tables_wish *wish, bool mappings)
{
	const uint32_t segments = segments_for(size, wish->segments);
	const uint64_t first = live_first_bytes(size), slots = slot_bytes(segments);
	const uint64_t kept = whole_pages(first + slots + (mappings ? mapping_bytes() : 0));
	const uint64_t bytes = kept + whole_pages(live_above_bytes(size));
	unsigned char *memory = map(bytes, wish->may_advise);

	if (!memory)
		return false;
	parts[0].start = memory;
	parts[0].bytes = bytes;
	parts[0].kept_bytes = kept;
	slot_open(segments, memory + first);
	if (mappings)
		mapping_open(memory + first + slots);
	live_open(size, memory, memory + kept);
	lock_all_leave_out(LOCK_ALL_TABLES, memory, bytes);
	return true;
}

bool tables_open(const struct tables_wish *wish)
{
	const bool must = wish->mappings == TABLES_MAPPINGS;
	struct live_size size = live_size_for(wish->period_bytes);

	last_level_open();
	if (parts[0].bytes)
		return !must || mapping_is_open() || open_mappings(wish->may_advise);
	do
		if ((wish->mappings != TABLES_NO_MAPPINGS && open_with(&size, wish, true)) ||
		    (!must && open_with(&size, wish, false)))
			return true;
	while (live_size_lower(&size));
	return false;
}

uint64_t tables_bytes(void)
{
	uintptr_t start;

	return parts[0].bytes + parts[1].bytes + last_level_bytes(&start);
}

void tables_tell(struct region_header *header)
{
	header->own_start = parts[0].bytes ? (uintptr_t)parts[0].start : 0;
	header->own_end = header->own_start + parts[0].bytes;
	const uint64_t grown = last_level_bytes(&header->grown_start);
	header->grown_end = header->grown_start + grown;
}

void tables_give_back(void)
{
	const uint64_t left = parts[0].kept_bytes + whole_pages(live_give_back());

	if (!parts[0].bytes || left == parts[0].bytes)
		return;
	memory_unmap(parts[0].start + left, parts[0].bytes - left);
	parts[0].bytes = left;
	lock_all_leave_out(LOCK_ALL_TABLES, parts[0].start, left);
}

void tables_close(void)
{
	live_close();
	slot_close();
	mapping_close();
	for (int i = 0; i < 2; i++) {
		if (parts[i].bytes > parts[i].kept_bytes)
			memory_unmap(
			    parts[i].start + parts[i].kept_bytes, parts[i].bytes - parts[i].kept_bytes);
		if (parts[i].bytes)
			(void)memory_retire(parts[i].start, parts[i].kept_bytes);
		parts[i].bytes = 0;
	}
	last_level_close();
	lock_all_leave_out(LOCK_ALL_TABLES, NULL, 0);
	lock_all_leave_out(LOCK_ALL_MAPPINGS, NULL, 0);
}
