/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/region/region_takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct range {
	uint64_t start, end, offset;
	char path[512];
};

/* The first line of /proc/PID/maps for which `wanted` says yes. */
static int find_range(pid_t pid, bool (*wanted)(const struct range *range, uint64_t argument),
    uint64_t argument, struct range *range)
{
	char path[64], line[4352];
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT ? -ESRCH : -errno;
	int result = -ENOENT;
	while (result && fgets(line, sizeof(line), maps)) {
		range->path[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %511[^\n]", &range->start,
		        &range->end, &range->offset, range->path) >= 3 &&
		    wanted(range, argument))
			result = 0;
	}
	fclose(maps);
	return result;
}

static bool is_region(const struct range *range, uint64_t argument)
{
	(void)argument;
	return range->offset == 0 && strcmp(range->path, "/memfd:heaptap (deleted)") == 0;
}

static bool holds_address(const struct range *range, uint64_t address)
{
	return address >= range->start && address < range->end;
}

/* The one that reads the region now, if it is still there: it has the region mapped, as only samplers and
 * targets do. */
static bool sampler_lives(const struct region *region)
{
	struct range range;
	pid_t sampler = (pid_t)atomic_load(&region_header(region)->sampler_pid);
	return sampler > 0 && sampler != getpid() && find_range(sampler, is_region, 0, &range) == 0;
}

int region_takeover_open(pid_t pid, struct region *region)
{
	struct range range;
	char path[128];
	int error = find_range(pid, is_region, 0, &range);
	if (error)
		return error;
	snprintf(
	    path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, range.start, range.end);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	error = region_reopen(region, fd);
	if (error) {
		close(fd);
		return error;
	}
	if (sampler_lives(region)) {
		region_close(region);
		return -EBUSY;
	}
	atomic_store(&region_header(region)->sampler_pid, (uint32_t)getpid());
	return 0;
}

int region_takeover_library(pid_t pid, uint64_t trigger_address, char *path, size_t path_bytes)
{
	struct range range;
	int error = find_range(pid, holds_address, trigger_address, &range);
	if (error)
		return error;
	if (range.path[0] != '/')
		return -ENOENT;
	if ((size_t)snprintf(path, path_bytes, "%s", range.path) >= path_bytes)
		return -ENAMETOOLONG;
	return 0;
}
