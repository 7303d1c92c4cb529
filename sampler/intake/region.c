/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/region.h"

#include "proto/region_layout.h"
#include "proto/walk.h"
#include "sampler/intake/sparse_run.h"
#include "sampler/linux/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint32_t region_clock(void)
{
	static const char *const without_call[] = {
	    "tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n", "arch_sys_counter\n"};
	char text[64] = "";
	int fd =
	    open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		ssize_t got = read(fd, text, sizeof(text) - 1);

		text[got > 0 ? got : 0] = '\0';
		close(fd);
	}
	for (size_t i = 0; i < sizeof(without_call) / sizeof(without_call[0]); i++)
		if (strcmp(text, without_call[i]) == 0)
			return CLOCK_MONOTONIC;
	return CLOCK_MONOTONIC_COARSE;
}

static void lay_out(struct region *region, uint64_t live_max, uint64_t period_bytes)
{
	uint64_t segments = (live_max + REGION_SEGMENT_SLOTS - 1) / REGION_SEGMENT_SLOTS;

	region->segments = segments < 1  ? 1
	    : segments > REGION_SEGMENTS ? REGION_SEGMENTS
	                                 : (uint32_t)segments;
	region->large_buffers = region_large_buffers(period_bytes);
	region_lay_out(&region->offsets, region->segments, region->large_buffers);
}

/* The first touch of the pages that every program run needs must not be charged to the target, neither in
 * time nor in its memory cgroup. fallocate makes the pages without mapping them here, so they do not count
 * as this process' memory either. */
void region_prefault(const struct region *region)
{
	const struct {
		uint64_t offset, bytes;
	} parts[] = {
	    {0, REGION_PAGE_BYTES * 2},
	    {region->offsets.modules, REGION_PAGE_BYTES * 4},
	    {region->offsets.owners, REGION_PAGE_BYTES},
	    {region->offsets.buffers, BUFFER_BITMAPS_BYTES + 64 * 2048},
	    {region->offsets.segments, sizeof(((struct region_segment *)NULL)->slots)},
	};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t offset = parts[i].offset;
		const int fd = region_file_at(region, &offset);

		(void)fallocate(fd, 0, (off_t)offset, (off_t)parts[i].bytes); /* only saves time later */
	}
}

static int write_header(const struct region *region, const struct region_options *options)
{
	struct region_header header = {
	    .magic = REGION_MAGIC,
	    .abi = REGION_ABI,
	    .region_id = region->id,
	    .key = region->key,
	    .offsets = region->offsets,
	    .segments = region->segments,
	    .large_buffers = region->large_buffers,
	    .start_segments = region_start_segments(options->period_bytes, region->segments),
	    .dump_bytes = options->dump_bytes,
	    .clock_id = options->clock_id,
	    .copy_period_bytes = options->copy_period_bytes,
	    .dumps_most = options->dumps_most,
	    .sampler_pid = (uint32_t)getpid(),
	    .snapshot_signal = options->snapshot_signal,
	    .signal_everywhere = options->signal_everywhere,
	    .start_paused = options->start_paused,
	    .no_peak = options->no_peak,
	    .record_mmap = options->record_mmap,
	    .uprobe_dev = options->uprobe_dev,
	    .uprobe_ino = options->uprobe_ino,
	    .wants_command_line = options->command_line,
	    .period_bytes = options->period_bytes,
	    .mode = options->mode,
	    .walk = options->walk,
	    .state = REGION_SPARE,
	};
	ssize_t written = pwrite(region->fd, &header, sizeof(header), 0);

	return written == (ssize_t)sizeof(header) ? 0 : written < 0 ? -errno : -EIO;
}

/* A file whose size nobody can change. */
static int make_file(const char *name, uint64_t bytes)
{
	const int fd = memory_file_create(name);

	if (fd < 0 ||
	    (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0))
		return fd;
	const int error = -errno;
	close(fd);
	return error;
}

static int make_files(struct region *region)
{
	struct stat status;

	region->fd = make_file(REGION_MEMORY_NAME, region->offsets.end);
	if (region->fd < 0)
		return region->fd;
	region->buffers_fd = make_file(REGION_BUFFERS_NAME, region_buffers_bytes(&region->offsets));
	if (region->buffers_fd < 0)
		return region->buffers_fd;
	if (fstat(region->fd, &status) != 0)
		return -errno;
	region->ino = status.st_ino;
	region->dev = status.st_dev;
	return 0;
}

int region_open_spare(struct region *region, uint32_t id, uint64_t key, const struct region_options *options)
{
	*region = (struct region){.id = id, .key = key, .fd = -1, .buffers_fd = -1};
	lay_out(region, options->live_max, options->period_bytes);
	region->walks = options->walk != 0;
	int error = make_files(region);
	if (!error)
		error = write_header(region, options);
	if (error)
		region_close(region);
	return error;
}

int region_file_at(const struct region *region, uint64_t *offset)
{
	const struct region_offsets *offsets = &region->offsets;

	if (region->buffers_fd < 0 || *offset < offsets->buffers || *offset >= offsets->frees)
		return region->fd;
	*offset -= offsets->buffers;
	return region->buffers_fd;
}

static int map_file(void *at, uint64_t bytes, int fixed, int fd, unsigned char **base)
{
	void *mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | fixed, fd, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	*base = mapped;
	return 0;
}

/* Over the hole in the region's own file. */
static int map_buffers(struct region *region, int fd)
{
	unsigned char *at = region->base + region->offsets.buffers;

	return map_file(at, region_buffers_bytes(&region->offsets), MAP_FIXED, fd, &at);
}

int region_map(struct region *region)
{
	if (region->base)
		return 0;
	int error = map_file(NULL, region->offsets.end, 0, region->fd, &region->base);
	if (!error && region->buffers_fd >= 0)
		error = map_buffers(region, region->buffers_fd);
	if (error && region->base) {
		munmap(region->base, region->offsets.end);
		region->base = NULL;
	}
	return error;
}

int region_open(struct region *region, uint32_t id, uint64_t key, const struct region_options *options)
{
	int error = region_open_spare(region, id, key, options);

	if (!error)
		error = region_map(region);
	if (error)
		region_close(region);
	return error;
}

/* Could the file be truncated while we have it mapped? -1: it is no memfd. */
static bool keeps_size(int fd, bool anonymous)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (anonymous || (seals & F_SEAL_SHRINK));
}

int region_add_buffers(struct region *region, int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return -errno;
	if (!keeps_size(fd, region->anonymous) ||
	    (uint64_t)status.st_size != region_buffers_bytes(&region->offsets))
		return -EPROTO;
	const int error = map_buffers(region, fd);
	if (!error)
		region->buffers_fd = fd;
	return error;
}

int region_reopen(struct region *region, int fd, bool anonymous)
{
	struct region_header header;
	struct stat status;

	if (fstat(fd, &status) != 0)
		return -errno;
	if (!keeps_size(fd, anonymous))
		return -EPROTO;
	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    !region_is_whole(&header, (uint64_t)status.st_size))
		return -EPROTO;
	*region = (struct region){.fd = fd,
	    .buffers_fd = -1,
	    .id = header.region_id,
	    .key = header.key & ~REGION_KEY_PLACE,
	    .anonymous = anonymous,
	    .walks = header.walk != 0,
	    .segments = header.segments,
	    .large_buffers = header.large_buffers,
	    .offsets = header.offsets};
	region->ino = status.st_ino;
	region->dev = status.st_dev;
	return region_map(region);
}

bool region_abandoned(struct region *region)
{
	/* The kernel refuses this seal while any process has the file mapped writable, so we must unmap
	 * it. */
	if (munmap(region->base, region->offsets.end) != 0)
		return false;
	region->base = NULL;
	/* Any other error was caused by a target (it can seal the seals) and must not make us wait for
	 * ever. */
	if (fcntl(region->fd, F_ADD_SEALS, F_SEAL_WRITE) == 0 || errno != EBUSY)
		return true;
	return region_map(region) != 0; /* a target has sealed it: it is of no more use */
}

void region_close(struct region *region)
{
	if (region->base)
		munmap(region->base, region->offsets.end);
	if (region->fd >= 0)
		close(region->fd);
	if (region->buffers_fd >= 0)
		close(region->buffers_fd);
	if (region->holder)
		*region->holder = NULL;
	region->holder = NULL;
	region->base = NULL;
	region->fd = region->buffers_fd = -1;
}

struct region_header *region_header(const struct region *region)
{
	return (struct region_header *)(void *)region->base;
}

struct region_place *region_place(const struct region *region, uint32_t place)
{
	if (place >= REGION_PLACES)
		return NULL;
	return (struct region_place *)(void *)(region->base + region->offsets.places) + place;
}

struct walk_area *region_walk(const struct region *region)
{
	return (struct walk_area *)(void *)(region->base + region->offsets.walk);
}

struct region_segment *region_segments(const struct region *region)
{
	return (struct region_segment *)(void *)(region->base + region->offsets.segments);
}

struct stack_log_place *region_stack_log(const struct region *region, uint32_t place)
{
	struct stack_log_place *places = (void *)(region->base + region->offsets.stack_log);

	return place < STACK_LOG_PLACES ? &places[place] : NULL;
}

struct stack_log_slot *region_stack_log_slot(const struct region *region, uint32_t slot)
{
	const uint32_t segment = slot / REGION_SEGMENT_SLOTS;

	return segment < region->segments
	    ? &region_segments(region)[segment].logged[slot % REGION_SEGMENT_SLOTS]
	    : NULL;
}

static _Atomic uint16_t *owners(const struct region *region)
{
	return (_Atomic uint16_t *)(void *)(region->base + region->offsets.owners);
}

/* ---- slots */

enum {
	SLOTS_BYTES = REGION_SEGMENT_SLOTS * sizeof(struct region_slot),
	SLOTS_PAGES = SLOTS_BYTES / REGION_PAGE_BYTES,
};
_Static_assert(SLOTS_BYTES % REGION_PAGE_BYTES == 0, "slots and kept slots share no page");

static uint64_t slots_offset(const struct region *region, uint32_t segment)
{
	return region->offsets.segments + segment * sizeof(struct region_segment) +
	    offsetof(struct region_segment, slots);
}

static uint64_t kept_offset(const struct region *region, uint32_t segment)
{
	return region->offsets.segments + segment * sizeof(struct region_segment) +
	    offsetof(struct region_segment, kept);
}

/* Which pages of SLOTS_BYTES from the offset on have been written: a bit each. */
static uint64_t pages_there(const struct region *region, uint64_t offset)
{
	struct sparse_run run = {0};
	uint64_t mask = 0;

	if (!region->sparse)
		return (UINT64_C(1) << SLOTS_PAGES) - 1;
	for (uint32_t page = 0; page < SLOTS_PAGES; page++)
		mask |=
		    (uint64_t)sparse_run_has(&run, region->fd, offset + page * (uint64_t)REGION_PAGE_BYTES)
		    << page;
	return mask;
}

struct region_segment_pages region_segment_pages(const struct region *region, uint32_t segment)
{
	return (struct region_segment_pages){
	    .slots = pages_there(region, slots_offset(region, segment)),
	    .kept = pages_there(region, kept_offset(region, segment)),
	};
}

int region_segment_owner(const struct region *region, uint32_t segment)
{
	if (segment >= region->segments)
		return -1;
	uint16_t owner = atomic_load_explicit(&owners(region)[segment], memory_order_acquire);
	return owner > REGION_PLACES ? -1 : (int)owner - 1;
}

bool region_is_written(const struct region *region, const void *part, size_t bytes)
{
	struct sparse_run run = {0};
	const uint64_t begin = (uint64_t)((const unsigned char *)part - region->base), end = begin + bytes;

	if (!region->sparse)
		return true;
	for (uint64_t page = begin / REGION_PAGE_BYTES * REGION_PAGE_BYTES; page < end;
	     page += REGION_PAGE_BYTES)
		if (!sparse_run_has(&run, region->fd, page))
			return false;
	return true;
}

/* Gives pages back; those that were never touched are not touched. */
static bool punch_hole(const struct region *region, uint64_t offset, uint64_t bytes)
{
	return fallocate(
	           region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) == 0;
}

/* A target may have sealed its file against this: then those pages that are there are emptied. */
static void empty(const struct region *region, uint64_t offset, uint64_t bytes)
{
	const uint64_t end = offset + bytes;
	struct sparse_run run = {0};

	if (punch_hole(region, offset, bytes))
		return;
	for (uint64_t next; offset < end; offset = next) {
		const uint64_t page = offset / REGION_PAGE_BYTES * REGION_PAGE_BYTES;

		next = page + REGION_PAGE_BYTES < end ? page + REGION_PAGE_BYTES : end;
		if (!region->sparse || sparse_run_has(&run, region->fd, page))
			memset(region->base + offset, 0, next - offset);
	}
}

static void empty_counts(const struct region *region, uint32_t place)
{
	struct walk_counts *counts = &region_walk(region)->counts[place];

	empty(region, (uint64_t)((unsigned char *)counts - region->base), sizeof(*counts));
}

/* Place 0 is one that nobody else will need soon, and often the only one; at any other the next child finds
 * its pages there. */
static void empty_slots(const struct region *region, uint32_t place, uint32_t segment)
{
	if (place == 0 && punch_hole(region, slots_offset(region, segment), SLOTS_BYTES))
		return;
	uint64_t pages = pages_there(region, slots_offset(region, segment));
	for (; pages; pages &= pages - 1)
		memset((char *)region_segments(region)[segment].slots +
		        (size_t)__builtin_ctzll(pages) * REGION_PAGE_BYTES,
		    0, REGION_PAGE_BYTES);
}

/* What is in the log of stacks is of another process than the next one here. */
static void empty_stack_log(const struct region *region, uint32_t number)
{
	struct stack_log_place *log = region_stack_log(region, number);

	if (!log || !atomic_load(&log->node_count))
		return;
	atomic_store(&log->node_count, 0);
	atomic_store(&log->frame_count, 0);
	atomic_fetch_add(&log->epoch, 1);
	const off_t start = (off_t)((unsigned char *)log - region->base) + REGION_PAGE_BYTES;
	(void)fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start,
	    (off_t)sizeof(*log) - REGION_PAGE_BYTES);
}

/* A child may take the place as soon as its state is PLACE_FREE, which is 0: the state is the first word, and
 * changes last, once all else is as its next owner has to find it. */
static void empty_place(struct region_place *place)
{
	const uint32_t generation = atomic_load(&place->generation) + 1;
	const size_t first = offsetof(struct region_place, pid),
	             skipped = offsetof(struct region_place, generation),
	             rest = skipped + sizeof(place->generation);
	unsigned char *bytes = (unsigned char *)place;

	_Static_assert(offsetof(struct region_place, state) == 0, "in front of what is cleared");
	memset(bytes + first, 0, skipped - first);
	memset(bytes + rest, 0, sizeof(*place) - rest);
	atomic_store(&place->generation, generation);
	atomic_store_explicit(&place->state, PLACE_FREE, memory_order_release);
}

void region_release_place(const struct region *region, uint32_t number)
{
	struct region_place *place = region_place(region, number);

	if (!place)
		return;
	atomic_store(&place->state, PLACE_DEAD);
	for (uint32_t s = 0; s < region->segments; s++) {
		if (region_segment_owner(region, s) != (int)number)
			continue;
		empty_slots(region, number, s);
		empty(region, kept_offset(region, s), SLOTS_BYTES);
		atomic_store(&owners(region)[s], 0);
	}
	region_free_half_written(region, number);
	if (number < WALK_PLACES && atomic_load(&place->walked))
		empty_counts(region, number);
	empty_stack_log(region, number);
	empty_place(place);
}

void region_release_place_of(const struct region *region, uint32_t number, uint32_t generation)
{
	const struct region_place *place = region_place(region, number);

	if (place && atomic_load(&place->generation) == generation)
		region_release_place(region, number);
}
