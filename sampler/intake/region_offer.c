/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/region_offer.h"

#include "proto/region_layout.h"
#include "sampler/intake/region_takeover.h"
#include "sampler/linux/memory_file.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NAME_MEMFD     "/memfd:" REGION_MEMORY_NAME " (deleted)"
#define NAME_ANONYMOUS "/dev/zero (deleted)"

enum { CANDIDATES = 8 }; /* mappings of one process that are opened, at most */

/* Of the first mapping of an offer in anonymous memory: behind it are the buffers, which are another file. */
static uint64_t anonymous_bytes(void)
{
	struct region_offsets offsets;

	region_lay_out(&offsets, REGION_START_SEGMENTS_LEAST, REGION_OFFER_LARGE_BUFFERS);
	return offsets.buffers;
}

bool region_offer_parse(const char *maps_line, struct region_offer_range *range)
{
	char flags[5];
	uint64_t offset;
	int at = 0;

	if (!strstr(maps_line, " rw-s ")) /* nearly all lines: the rest costs a microsecond */
		return false;
	if (sscanf(maps_line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*x:%*x %" SCNu64 " %n", &range->start,
	        &range->end, flags, &offset, &range->ino, &at) < 5 ||
	    at == 0 || offset != 0 || range->end <= range->start || strcmp(flags, "rw-s") != 0)
		return false;
	const size_t length = strcspn(maps_line + at, "\n");
	range->anonymous =
	    length == strlen(NAME_ANONYMOUS) && strncmp(maps_line + at, NAME_ANONYMOUS, length) == 0;
	/* The size of another version's is not known; anonymous memory has nothing else that tells it. */
	return range->anonymous
	    ? range->end - range->start == anonymous_bytes()
	    : length == strlen(NAME_MEMFD) && strncmp(maps_line + at, NAME_MEMFD, length) == 0;
}

static int reopen(struct region_offer *offer, int fd, pid_t pid, const struct region_offer_range *range)
{
	const bool anonymous = range->anonymous;
	struct region_header header;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return anonymous ? -ENOENT : -EPROTO;
	if (header.magic == 0)
		return -EAGAIN;
	if (header.magic != REGION_MAGIC)
		return anonymous ? -ENOENT : -EPROTO; /* the program's own memory, perhaps */
	offer->abi = header.abi == REGION_ABI ? 0 : header.abi;
	if (offer->abi)
		return -EPROTO;
	if (header.offered != 1)
		return -ENOENT; /* a session's */
	if (header.segments != (anonymous ? REGION_START_SEGMENTS_LEAST : REGION_OFFER_SEGMENTS))
		return -EPROTO;
	if (header.state == REGION_SPARE)
		return -EAGAIN;
	if (header.state != REGION_OFFERED && header.state != REGION_READY)
		return -ENOENT; /* a session's */
	int error = region_reopen(&offer->region, fd, anonymous);
	if (!error)
		error = region_takeover_buffers(&offer->region, pid, range->start);
	if (error)
		return error;
	offer->region.sparse = true;
	struct region_header *shared = region_header(&offer->region);
	offer->session = header.session;
	offer->used = atomic_load(&shared->state) == REGION_READY;
	return region_takeover_may_be_read(&offer->region, offer->effort, &offer->sampler_pid) ? -EBUSY : 0;
}

static int open_candidate(struct region_offer *offer, pid_t pid, const struct region_offer_range *range)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, range->start,
	    range->end);
	int fd = memory_file_open(path);
	if (fd < 0)
		return fd == -EINVAL ? -ENOENT : fd == -ENOENT ? -ESRCH : fd == -EACCES ? -EPERM : fd;
	int error = region_takeover_is_safe(fd, range->anonymous) ? reopen(offer, fd, pid, range) : -EPROTO;
	if (!error)
		return 0;
	if (offer->region.base) /* the descriptor is the region's */
		region_close(&offer->region);
	else
		close(fd);
	offer->region.fd = -1;
	return error;
}

int region_offer_open(struct region_offer *offer, pid_t pid)
{
	char line[4352];
	struct region_offer_range range;
	int result = -ENOENT, count = 0;

	*offer = (struct region_offer){.region.fd = -1, .effort = offer->effort};
	FILE *maps = proc_open_text(pid, "maps");
	if (!maps)
		return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	/* The next candidate is tried if this candidate is no offer. */
	while (result == -ENOENT && count < CANDIDATES && fgets(line, sizeof(line), maps))
		if (region_offer_parse(line, &range)) {
			count++;
			result = open_candidate(offer, pid, &range);
		}
	fclose(maps);
	return result;
}

/* Not an offer, but a region that an earlier daemon gave to a process that ran already (attach_jobs.c). Its
 * memory belongs to whoever made it, which a process of another user cannot imitate. */
static bool is_of_attached(const struct region *region, bool used)
{
	struct stat status;

	return used && !region->anonymous && fstat(region->fd, &status) == 0 && status.st_uid == geteuid();
}

/* What only a sampler says of a region: who made an offer may have said anything. */
static void reset_sampler_part(struct region *region, bool attached)
{
	struct region_header *header = region_header(region);

	region->walks = false;
	atomic_store(&header->walk, 0);
	header->dump_bytes = 0;
	header->copy_period_bytes = 0;
	header->snapshot_signal = 0;
	header->start_paused = 0;
	header->no_peak = 0;
	header->record_mmap = 0;
	if (attached)
		return;
	header->attached_after_ns = 0;
	header->attached_rss_bytes = 0;
	header->thread_stacks = 0;
	header->below_main_stack = 0;
	header->filtered = 0;
}

int region_offer_accept(struct region *region, const struct region_offer_terms *terms)
{
	struct region_header *header = region_header(region);

	if (!region_takeover_claim(region, terms->sampler_pid))
		return -EBUSY;
	region->id = terms->id;
	region->key = terms->key & ~REGION_KEY_PLACE;
	header->region_id = region->id;
	header->key = region->key;
	header->clock_id = terms->clock_id;
	header->session = terms->session;
	reset_sampler_part(region, is_of_attached(region, terms->used));
	region_set_period(header, terms->period_bytes);
	return 0;
}

void region_offer_turn(const struct region *region, bool on)
{
	atomic_store_explicit(
	    &region_header(region)->mode, on ? REGION_MODE_COPY : REGION_MODE_OFF, memory_order_release);
}
