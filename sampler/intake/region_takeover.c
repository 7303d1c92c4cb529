/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/region_takeover.h"

#include "pprof/text/clock.h"
#include "sampler/linux/memory_file.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"
#include "sampler/linux/thread_facts.h"

#include <dirent.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NAME_BUFFERS   "/memfd:" REGION_BUFFERS_NAME " (deleted)"
#define NAME_ANONYMOUS "/dev/zero (deleted)"

struct range {
	uint64_t start, end, offset;
	char path[512];
};

/* The first line of /proc/PID/maps for which `wanted` returns true. */
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
	return range->offset == 0 && strcmp(range->path, "/memfd:" REGION_MEMORY_NAME " (deleted)") == 0;
}

static bool holds_address(const struct range *range, uint64_t address)
{
	return address >= range->start && address < range->end;
}

/* The very file of the region. Nobody is asked: the descriptor may be another one by now, and what has such a
 * name may be any file, of a FUSE mount of the target's owner that never answers. */
static bool is_file_of(const struct region *region, int folder, const char *name)
{
	struct statx facts;

	return statx(folder, name, AT_STATX_DONT_SYNC, STATX_INO, &facts) == 0 &&
	    facts.stx_ino == region->ino && makedev(facts.stx_dev_major, facts.stx_dev_minor) == region->dev;
}

enum answer { NO, YES, UNKNOWN };

/* Whether a process has a descriptor of this very region. Looks at *left descriptors at most, and takes those
 * that it has looked at from it. */
static enum answer holds_region(pid_t pid, const struct region *region, int64_t *left)
{
	static const char memory[] = "/memfd:";
	char path[64], link[sizeof(memory) - 1];
	struct dirent *entry;
	bool holds = false;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *descriptors = opendir(path);
	if (!descriptors)
		return NO;
	for (; !holds && *left && (entry = readdir(descriptors)); --*left)
		holds = readlinkat(dirfd(descriptors), entry->d_name, link, sizeof(link)) == sizeof(link) &&
		    memcmp(link, memory, sizeof(link)) == 0 &&
		    is_file_of(region, dirfd(descriptors), entry->d_name);
	closedir(descriptors);
	return holds ? YES : *left ? NO : UNKNOWN;
}

/*
 * Whether the sampler that the header names still exists. Its pid is what the target says, and may be another
 * process' by now, even one that has the region mapped (a child of the target's). But samplers keep the
 * descriptor, and targets close it when they have mapped it.
 */
static enum answer is_read(const struct region *region, int64_t *left, uint32_t *sampler_pid)
{
	*sampler_pid = atomic_load(&region_header(region)->sampler_pid);
	const pid_t sampler = (pid_t)*sampler_pid;
	return sampler > 0 && sampler != getpid() ? holds_region(sampler, region, left) : NO;
}

static bool is_surely_read(const struct region *region, uint32_t *sampler_pid)
{
	int64_t left = INT64_MAX;

	return is_read(region, &left, sampler_pid) == YES;
}

bool region_takeover_is_read(const struct region *region)
{
	uint32_t sampler_pid;

	return is_surely_read(region, &sampler_pid);
}

bool region_takeover_may_be_read(const struct region *region, struct throttle *effort, uint32_t *sampler_pid)
{
	enum { DESCRIPTORS = 1 << 14 };
	static const struct throttle_rate rate = {
	    .burst = DESCRIPTORS, .units = DESCRIPTORS, .step_ns = CLOCK_NS_PER_S};

	throttle_fill(effort, &rate, clock_now_ns());
	return is_read(region, &effort->left, sampler_pid) != NO;
}

/* Whoever looks after that finds our descriptor of it. */
bool region_takeover_claim(const struct region *region, uint32_t sampler_pid)
{
	return atomic_compare_exchange_strong(
	    &region_header(region)->sampler_pid, &sampler_pid, (uint32_t)getpid());
}

/* As the kernel calls the file. */
static bool is_named(int fd, const char *wanted)
{
	char path[PROC_PATH_BYTES], name[64];
	const ssize_t length = readlink(proc_fd_path(path, fd), name, sizeof(name));

	return length == (ssize_t)strlen(wanted) && memcmp(name, wanted, (size_t)length) == 0;
}

/* A file of that name in some mount namespace is on another device, and a memfd has another name: so nobody
 * has a descriptor of this one by which it could be truncated. */
static bool is_anonymous(int fd)
{
	struct stat status;

	return is_named(fd, NAME_ANONYMOUS) && fstat(fd, &status) == 0 &&
	    status.st_dev == memory_file_device() && status.st_dev != 0;
}

bool region_takeover_is_safe(int fd, bool anonymous)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW;

	return anonymous ? is_anonymous(fd)
	                 : fcntl(fd, F_ADD_SEALS, size) == 0 || (fcntl(fd, F_GET_SEALS) & size) == size;
}

enum { MAPPED_PATH_BYTES = 128 };

/* The file of the mapping that has these very bounds. */
static const char *mapped_path(char path[MAPPED_PATH_BYTES], pid_t pid, uint64_t start, uint64_t end)
{
	snprintf(path, MAPPED_PATH_BYTES, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, start, end);
	return path;
}

static int open_mapped(pid_t pid, uint64_t start, uint64_t end)
{
	char path[MAPPED_PATH_BYTES];

	return memory_file_open(mapped_path(path, pid, start, end));
}

/* Where the process that was forked from it has it. Asks about one mapping: the process may have 65,530. */
static bool has_region_at(const struct region *region, pid_t pid, uint64_t start)
{
	char path[MAPPED_PATH_BYTES];

	return is_file_of(region, AT_FDCWD, mapped_path(path, pid, start, start + region->offsets.buffers));
}

/* The buffers' file has nothing that tells whose it is, and we shall write to it. So it must have the name
 * that only such files have; of anonymous memory, whoever has it may write to it. */
static int open_buffers(const struct region *region, pid_t pid, uint64_t start)
{
	const struct region_offsets *offsets = &region->offsets;
	const int fd = open_mapped(pid, start + offsets->buffers, start + offsets->frees);

	if (fd < 0 ||
	    ((region->anonymous || is_named(fd, NAME_BUFFERS)) &&
	        region_takeover_is_safe(fd, region->anonymous)))
		return fd;
	close(fd);
	return -EPROTO;
}

/* In anonymous memory the zeroes that hide the buffers from a worker look like the buffers. So the process
 * that was there first is asked. */
int region_takeover_buffers(struct region *region, pid_t pid, uint64_t start)
{
	enum { FORKS_MOST = 16 };
	int fd = open_buffers(region, pid, start);

	for (int i = 0; (fd < 0 || region->anonymous) && i < FORKS_MOST; i++) {
		pid = thread_facts_read(pid).parent;
		if (pid <= 0 || !has_region_at(region, pid, start))
			break;
		const int earlier = open_buffers(region, pid, start);
		if (earlier >= 0 && fd >= 0)
			close(fd);
		if (earlier >= 0)
			fd = earlier;
	}
	if (fd < 0)
		return 0;
	const int error = region_add_buffers(region, fd);
	if (error)
		close(fd);
	return error;
}

static int open_region(pid_t pid, struct region *region)
{
	struct range range;
	int error = find_range(pid, is_region, 0, &range);

	if (error)
		return error;
	int fd = open_mapped(pid, range.start, range.end);
	if (fd < 0)
		return fd == -EINVAL ? -ENOENT : fd == -EACCES ? -EPERM : fd;
	error = region_reopen(region, fd, false);
	if (error) {
		close(fd);
		return error;
	}
	error = region_takeover_buffers(region, pid, range.start);
	if (error)
		region_close(region);
	return error;
}

pid_t region_takeover_sampler(pid_t pid)
{
	struct region region;

	if (open_region(pid, &region) != 0)
		return 0;
	pid_t sampler = (pid_t)atomic_load(&region_header(&region)->sampler_pid);
	bool lives = region_takeover_is_read(&region);
	region_close(&region);
	return lives ? sampler : 0;
}

int region_takeover_open(pid_t pid, struct region *region)
{
	uint32_t sampler_pid;
	int error = open_region(pid, region);

	if (error)
		return error;
	if (is_surely_read(region, &sampler_pid) || !region_takeover_claim(region, sampler_pid)) {
		region_close(region);
		return -EBUSY;
	}
	return 0;
}

/* Is it a copy of our library that only root (or we) can have written, with the same build id? */
static bool is_trusted_copy(int fd, const struct stat *status, int own_fd)
{
	const void *id, *own_id;
	bool same = false;

	if ((status->st_uid != 0 && status->st_uid != geteuid()) || (status->st_mode & (S_IWGRP | S_IWOTH)))
		return false;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL), *own_elf = elf_begin(own_fd, ELF_C_READ, NULL);
	ssize_t bytes = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
	if (bytes > 0 && own_elf && dwelf_elf_gnu_build_id(own_elf, &own_id) == bytes)
		same = memcmp(id, own_id, (size_t)bytes) == 0;
	elf_end(elf);
	elf_end(own_elf);
	return same;
}

static bool is_library(int fd, const struct stat *status, const char *own_path)
{
	struct stat own;
	int own_fd = regular_file_open(AT_FDCWD, own_path, 0, &own);

	if (own_fd < 0)
		return false;
	bool same = (own.st_dev == status->st_dev && own.st_ino == status->st_ino) ||
	    is_trusted_copy(fd, status, own_fd);
	close(own_fd);
	return same;
}

int region_takeover_library(pid_t pid, uint64_t trigger_address, const char *own_path, uint64_t *file_offset)
{
	struct range range;
	struct stat status;
	char path[MAPPED_PATH_BYTES];
	int error = find_range(pid, holds_address, trigger_address, &range);

	if (error)
		return error;
	int fd = regular_file_open(AT_FDCWD, mapped_path(path, pid, range.start, range.end), 0, &status);
	if (fd < 0)
		return fd;
	if (!is_library(fd, &status, own_path)) {
		close(fd);
		return -EACCES;
	}
	*file_offset = trigger_address - range.start + range.offset;
	return fd;
}
