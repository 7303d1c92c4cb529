/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/delivery.h"

#include "proto/region.h"
#include "sampler/linux/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIBRARY_MOST_BYTES = 16 << 20 };

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u
#endif

/* Since Linux 6.3 it must be said whether a file in memory may be executed. */
static int make_file(void)
{
	int fd = memfd_create(DELIVERY_NAME, MFD_CLOEXEC | MFD_EXEC);
	return fd < 0 && errno == EINVAL ? memfd_create(DELIVERY_NAME, MFD_CLOEXEC) : fd;
}

/* The only aligned place in the file with magic and ABI; 0: none, or several. */
static uint64_t find_request(const unsigned char *file, size_t bytes)
{
	uint64_t found = 0;
	for (size_t at = 0; at + sizeof(struct attach_request) <= bytes; at += sizeof(uint64_t)) {
		struct attach_request request;
		memcpy(&request, file + at, sizeof(request));
		if (request.magic != ATTACH_REQUEST_MAGIC || request.abi != REGION_ABI)
			continue;
		if (found)
			return 0;
		found = at;
	}
	return found;
}

static int copy(struct delivery *delivery, int from, size_t bytes)
{
	unsigned char *file = malloc(bytes);
	int error = file ? 0 : -ENOMEM;
	if (!error && pread(from, file, bytes, 0) != (ssize_t)bytes)
		error = -EIO;
	if (!error && !(delivery->request_offset = find_request(file, bytes)))
		error = -ENOEXEC;
	if (!error && pwrite(delivery->fd, file, bytes, 0) != (ssize_t)bytes)
		error = -errno;
	free(file);
	return error;
}

int delivery_open(struct delivery *delivery, const char *path)
{
	struct stat status;
	*delivery = (struct delivery){.fd = -1};
	int from = regular_file_open(AT_FDCWD, path, 0, &status);
	if (from < 0)
		return from;
	delivery->fd = make_file();
	int error = delivery->fd < 0                      ? -errno
	    : (uint64_t)status.st_size > LIBRARY_MOST_BYTES ? -EFBIG
	                                                    : copy(delivery, from, (size_t)status.st_size);
	close(from);
	if (error)
		delivery_close(delivery);
	return error;
}

void delivery_close(struct delivery *delivery)
{
	if (delivery->fd >= 0)
		close(delivery->fd);
	delivery->fd = -1;
}

int delivery_address(const struct delivery *delivery, pid_t holder, int region_fd)
{
	struct attach_request request = {.magic = ATTACH_REQUEST_MAGIC, .abi = REGION_ABI};
	snprintf(request.region_path, sizeof(request.region_path), "/proc/%d/fd/%d", (int)holder, region_fd);
	ssize_t written =
	    pwrite(delivery->fd, &request, sizeof(request), (off_t)delivery->request_offset);
	return written == (ssize_t)sizeof(request) ? 0 : -EIO;
}
