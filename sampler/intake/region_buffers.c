/* SPDX-License-Identifier: Apache-2.0 */
/* The stack buffers of a region. */
#include "sampler/intake/region.h"

#include "proto/buffer.h"
#include "sampler/intake/sparse_run.h"

#include <string.h>

/* Prefetches header and innermost frames of the buffer after next, among those whose bits are set: another
 * CPU has just written them. */
static void prefetch_ahead(const unsigned char *first, uint64_t bits, uint32_t bytes)
{
	enum { LINE_BYTES = 64, BEGINNING_BYTES = 512 };

	bits &= bits - 1;
	bits &= bits - 1;
	for (size_t i = 0; bits && i < BEGINNING_BYTES; i += LINE_BYTES)
		__builtin_prefetch(first + (size_t)__builtin_ctzll(bits) * bytes + i);
}

/* The lowest buffer whose bit is set, or NULL. */
static struct region_buffer *buffer_of(unsigned char *first, uint64_t bits, uint32_t class)
{
	return bits ? (struct region_buffer *)(void *)(first +
	                  (size_t)__builtin_ctzll(bits) * buffer_class[class].bytes)
	            : NULL;
}

/* Calls `visit` for every buffer whose bit is set; if it returns true, the buffer is freed. All buffers of
 * one word are freed at once, since the word's cache line moves between us and the target; but large ones
 * singly, since they are few and take long. Returns how many were freed. */
enum { LARGE_BYTES = 65536 };

/* Of the buffers whose bits are set, those in which something was written; and how much can be read of each
 * from its beginning on, up to the first page that was not: whoever has copied a stack has written it all. */
static uint64_t buffers_there(const struct region *region, const unsigned char *first, uint64_t taken,
    uint32_t bytes, uint32_t there[64])
{
	struct sparse_run run = {0};
	uint64_t mask = 0;

	for (; taken; taken &= taken - 1) {
		const int number = __builtin_ctzll(taken);
		uint64_t offset = (uint64_t)(first - region->base) + (uint64_t)number * bytes;
		const int fd = region_file_at(region, &offset);

		there[number] = bytes;
		if (region->sparse) {
			if (!sparse_run_has(&run, fd, offset / REGION_PAGE_BYTES * REGION_PAGE_BYTES))
				continue;
			if (run.end - offset < bytes)
				there[number] = (uint32_t)(run.end - offset);
		}
		mask |= taken & -taken;
	}
	return mask;
}

static size_t visit_area(const struct region *region, bool dropped,
    bool (*visit)(void *context, struct region_buffer *buffer, const struct region_buffer *next, size_t room),
    void *context)
{
	size_t count = 0;
	const uint64_t area = dropped ? region->offsets.dropped_buffers : region->offsets.buffers;
	_Atomic uint64_t *bitmap = (_Atomic uint64_t *)(void *)(region->base + area);
	unsigned char *buffers = region->base + area + BUFFER_BITMAPS_BYTES;
	uint32_t there[64];

	/* Few program runs have children that change their user id. Of others, to read the bitmaps would make
	 * a page of them. */
	if (dropped && region->sparse && !sparse_run_has(&(struct sparse_run){0}, region->fd, area))
		return 0;
	for (uint32_t c = 0; c < BUFFER_CLASSES; c++) {
		const uint32_t all = buffer_count(c, region->large_buffers, dropped),
		               words = buffer_words(all);

		for (uint32_t word = 0; word < words; word++) {
			uint64_t taken = atomic_load_explicit(&bitmap[word], memory_order_acquire) &
			    buffer_bits(all, word);
			uint64_t done = 0;
			unsigned char *first = buffers + word * 64u * (size_t)buffer_class[c].bytes;

			taken = buffers_there(region, first, taken, buffer_class[c].bytes, there);
			for (; taken; taken &= taken - 1) {
				struct region_buffer *buffer = buffer_of(first, taken, c);
				const uint32_t bytes = there[__builtin_ctzll(taken)];

				prefetch_ahead(first, taken, buffer_class[c].bytes);
				if (!visit(context, buffer, buffer_of(first, taken & (taken - 1), c),
				        bytes - sizeof(*buffer)))
					continue;
				atomic_store_explicit(&buffer->word, BUFFER_FREE, memory_order_relaxed);
				done |= taken & -taken;
				count++;
				if (buffer_class[c].bytes < LARGE_BYTES)
					continue;
				atomic_fetch_and_explicit(&bitmap[word], ~done, memory_order_release);
				done = 0;
			}
			if (done)
				atomic_fetch_and_explicit(&bitmap[word], ~done, memory_order_release);
		}
		bitmap += words;
		buffers += (size_t)all * buffer_class[c].bytes;
	}
	return count;
}

static size_t visit_buffers(const struct region *region,
    bool (*visit)(void *context, struct region_buffer *buffer, const struct region_buffer *next, size_t room),
    void *context)
{
	return visit_area(region, false, visit, context) + visit_area(region, true, visit, context);
}

static bool drain_one(
    void *context, struct region_buffer *buffer, const struct region_buffer *next, size_t room)
{
	const struct region_drain *drain = context;
	struct region_buffer header;

	if ((atomic_load_explicit(&buffer->word, memory_order_acquire) & BUFFER_STATE_MASK) != BUFFER_FULL)
		return false;
	if (next && drain->ahead)
		drain->ahead(drain->context, next, room);
	memcpy(&header, buffer, sizeof(header));
	return drain->taken(drain->context, &header, (unsigned char *)(buffer + 1), room);
}

size_t region_drain_buffers(const struct region *region, const struct region_drain *drain)
{
	return visit_buffers(region, drain_one, (void *)(uintptr_t)drain);
}

static bool half_written_by(
    void *context, struct region_buffer *buffer, const struct region_buffer *next, size_t room)
{
	(void)next;
	(void)room;
	return atomic_load_explicit(&buffer->word, memory_order_acquire) ==
	    buffer_word(BUFFER_WRITING, *(uint32_t *)context);
}

void region_free_half_written(const struct region *region, uint32_t place)
{
	visit_buffers(region, half_written_by, &place);
}
