/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/offer.h"

#include "preload/memory.h"
#include "preload/overcommit.h"
#include "preload/raw_file.h"
#include "preload/session.h"
#include "proto/region_layout.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/memfd.h>

static int open_memfd(const char *name, uint64_t bytes)
{
	int fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || syscall(SYS_ftruncate, fd, bytes) == 0)
		return fd;
	raw_file_close(fd);
	return -1;
}

/* The buffers' file, in its place in the region. */
static bool map_buffers(unsigned char *region, const struct region_offsets *offsets)
{
	const uint64_t bytes = region_buffers_bytes(offsets);
	const int fd = open_memfd("heaptap-buffers", bytes);

	if (fd < 0)
		return false;
	const bool mapped = memory_replace(region + offsets->buffers, bytes, fd);
	raw_file_close(fd);
	return mapped;
}

/* The beginning of a file that has room for more segments. NULL if there can be no file. A file beyond
 * RLIMIT_FSIZE would end the program with SIGXFSZ. */
static void *map_files(struct region_offsets *offsets, uint64_t bytes)
{
	region_lay_out(offsets, REGION_OFFER_SEGMENTS, REGION_OFFER_LARGE_BUFFERS);
	const int fd =
	    session_affordable(RLIMIT_FSIZE, offsets->end) ? open_memfd("heaptap", offsets->end) : -1;
	if (fd < 0)
		return NULL;
	void *start = memory_map(bytes, MAP_SHARED | MAP_NORESERVE, fd);
	raw_file_close(fd);
	if (!start || map_buffers(start, offsets))
		return start;
	memory_unmap(start, bytes);
	return NULL;
}

/* Takes two calls of mmap, but has no name in /proc/PID/maps, and no seals. */
static void *map_anonymous(const struct region_offsets *offsets)
{
	unsigned char *start = memory_map(offsets->end, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	if (!start || memory_cover(start + offsets->buffers, region_buffers_bytes(offsets)))
		return start;
	memory_unmap(start, offsets->end);
	return NULL;
}

struct region_header *offer_region(bool strict)
{
	struct region_offsets offsets;
	uint32_t segments = REGION_OFFER_SEGMENTS;

	region_lay_out(&offsets, REGION_START_SEGMENTS_LEAST, REGION_OFFER_LARGE_BUFFERS);
	const uint64_t bytes = offsets.end;
	if (overcommit_is_strict(OVERCOMMIT_PATH) || !session_affordable(RLIMIT_AS, bytes))
		return NULL;
	struct region_header *header = strict ? NULL : map_files(&offsets, bytes);
	if (!header) {
		segments = REGION_START_SEGMENTS_LEAST;
		region_lay_out(&offsets, segments, REGION_OFFER_LARGE_BUFFERS);
		header = map_anonymous(&offsets);
	}
	if (!header)
		return NULL;
	header->abi = REGION_ABI;
	header->offsets = offsets;
	header->segments = segments;
	header->start_segments = REGION_START_SEGMENTS_LEAST;
	header->large_buffers = REGION_OFFER_LARGE_BUFFERS;
	header->clock_id = CLOCK_MONOTONIC_COARSE;
	header->offered = 1;
	atomic_store_explicit(&header->period_bytes, REGION_OFFER_PERIOD_BYTES, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* who reads the magic number reads all of this */
	header->magic = REGION_MAGIC;
	return header;
}
