/* SPDX-License-Identifier: Apache-2.0 */
/* How large a region is, and where its parts are: one layout for each number of segments and of the largest
 * buffers. Pure. */
#ifndef PROTO_REGION_LAYOUT_H
#define PROTO_REGION_LAYOUT_H

#include "proto/buffer.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REGION_OFFER_PERIOD_BYTES (512u << 10) /* of an offered region, until a sampler says otherwise */

enum {
	REGION_OFFER_SEGMENTS = 1024,     /* that the file of an offered region has */
	REGION_START_SEGMENTS_LEAST = 64, /* and of one in anonymous memory, which has a size for ever */
	REGION_OFFER_LARGE_BUFFERS = 8,
};

/* At smaller periods more deep stacks wait at the same time. */
static inline uint32_t region_large_buffers(uint64_t period_bytes)
{
	return period_bytes < REGION_OFFER_PERIOD_BYTES ? buffer_class[BUFFER_CLASSES - 1].count
	                                                : (uint32_t)REGION_OFFER_LARGE_BUFFERS;
}

/* How many segments a program run maps when it starts: for the samples of 32 GiB of heap, a million at
 * most. */
static inline uint32_t region_start_segments(uint64_t period_bytes, uint32_t segments)
{
	const uint64_t slots = (UINT64_C(32) << 30) / (period_bytes ? period_bytes : 1);
	uint64_t start = slots / REGION_SEGMENT_SLOTS;

	if (start > REGION_OFFER_SEGMENTS)
		start = REGION_OFFER_SEGMENTS;
	if (start < REGION_START_SEGMENTS_LEAST)
		start = REGION_START_SEGMENTS_LEAST;
	return start < segments ? (uint32_t)start : segments;
}

static inline uint64_t buffer_area_bytes(uint32_t large_buffers, bool dropped)
{
	uint64_t bytes = BUFFER_BITMAPS_BYTES;

	for (uint32_t c = 0; c < BUFFER_CLASSES; c++)
		bytes += (uint64_t)buffer_count(c, large_buffers, dropped) * buffer_class[c].bytes;
	return bytes;
}

/* Fills in the offsets of a region with that many segments and buffers of the largest class: there is one
 * layout. */
static inline void region_lay_out(struct region_offsets *offsets, uint32_t segments, uint32_t large_buffers)
{
	const struct {
		uint64_t *offset, bytes;
	} parts[] = {
	    {&offsets->places, REGION_PLACES * sizeof(struct region_place)},
	    {&offsets->modules, REGION_MODULES_BYTES},
	    {&offsets->stacks, REGION_STACKS * sizeof(struct region_stack)},
	    {&offsets->command_line, REGION_COMMAND_LINE_BYTES},
	    {&offsets->owners, REGION_SEGMENTS * sizeof(uint16_t)},
	    {&offsets->buffers, buffer_area_bytes(large_buffers, false)},
	    {&offsets->frees, REGION_FREES * sizeof(struct region_free)},
	    {&offsets->dropped_buffers, buffer_area_bytes(large_buffers, true)},
	    {&offsets->walk, sizeof(struct walk_area)},
	    {&offsets->stack_log, STACK_LOG_PLACES * sizeof(struct stack_log_place)},
	    {&offsets->segments, segments * sizeof(struct region_segment)},
	};
	uint64_t at = REGION_PAGE_BYTES;
	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		/* The buffers are another file, and a program run maps the segments once more. So these
		 * parts begin, and the buffers end, with a page of any size. */
		const uint64_t page = parts[i].offset == &offsets->buffers ||
		        parts[i].offset == &offsets->frees || parts[i].offset == &offsets->segments
		    ? REGION_PAGE_BYTES_MOST
		    : REGION_PAGE_BYTES;

		*parts[i].offset = at = (at + page - 1) / page * page;
		at += parts[i].bytes;
	}
	offsets->end = (at + REGION_PAGE_BYTES - 1) / REGION_PAGE_BYTES * REGION_PAGE_BYTES;
}

/* Bytes that a program run maps when it starts: the beginning of the file. */
static inline uint64_t region_start_bytes(const struct region_header *header)
{
	return header->offsets.segments + header->start_segments * sizeof(struct region_segment);
}

/* Whether a header is one that this build has written, of a file with that many bytes. All of it may be
 * hostile: offsets are compared, and no sum is made of them. */
static inline bool region_is_whole(const struct region_header *header, uint64_t file_bytes)
{
	struct region_offsets offsets;

	if (header->magic != REGION_MAGIC || header->abi != REGION_ABI || header->segments < 1 ||
	    header->segments > REGION_SEGMENTS || header->start_segments < 1 ||
	    header->start_segments > header->segments ||
	    header->large_buffers > buffer_class[BUFFER_CLASSES - 1].count)
		return false;
	region_lay_out(&offsets, header->segments, header->large_buffers);
	return file_bytes == offsets.end && memcmp(&header->offsets, &offsets, sizeof(offsets)) == 0;
}

#endif
