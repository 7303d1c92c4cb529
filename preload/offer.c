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

/* A file beyond RLIMIT_FSIZE would end the program with SIGXFSZ. */
static int open_memfd(uint64_t bytes)
{
	if (!session_affordable(RLIMIT_FSIZE, bytes))
		return -1;
	int fd = (int)syscall(SYS_memfd_create, "heaptap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || syscall(SYS_ftruncate, fd, bytes) == 0)
		return fd;
	raw_file_close(fd);
	return -1;
}

/* The beginning of a file that has room for more segments. NULL if there can be no file. */
static void *map_file(struct region_offsets *offsets, uint64_t bytes)
{
	region_lay_out(offsets, REGION_OFFER_SEGMENTS, REGION_OFFER_LARGE_BUFFERS);
	const int fd = open_memfd(offsets->end);
	if (fd < 0)
		return NULL;
	void *start = memory_map(bytes, MAP_SHARED | MAP_NORESERVE, fd);
	raw_file_close(fd);
	return start;
}

struct region_header *offer_region(bool strict)
{
	struct region_offsets offsets;
	uint32_t segments = REGION_OFFER_SEGMENTS;

	region_lay_out(&offsets, REGION_START_SEGMENTS_LEAST, REGION_OFFER_LARGE_BUFFERS);
	const uint64_t bytes = offsets.end;
	if (overcommit_is_strict(OVERCOMMIT_PATH) || !session_affordable(RLIMIT_AS, bytes))
		return NULL;
	struct region_header *header = strict ? NULL : map_file(&offsets, bytes);
	if (!header) {
		/* takes one mmap, but has no name in /proc/PID/maps, and no seals */
		header = memory_map(bytes, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1);
		segments = REGION_START_SEGMENTS_LEAST;
		region_lay_out(&offsets, segments, REGION_OFFER_LARGE_BUFFERS);
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
