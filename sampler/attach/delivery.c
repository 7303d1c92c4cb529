/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/delivery.h"

#include "proto/attach_request.h"
#include "proto/region.h"
#include "sampler/linux/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIBRARY_MOST_BYTES = 16 << 20 };

#ifndef MFD_EXEC
#define MFD_NOEXEC_SEAL 0x0008u
#define MFD_EXEC        0x0010u
#endif

/* Since Linux 6.3 it must be said whether a file in memory may be executed, and vm.memfd_noexec may refuse
 * it. */
static int make_file(bool *executable)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(DELIVERY_NAME, flags | MFD_EXEC);
	*executable = fd >= 0 || errno != EACCES;
	if (fd < 0 && errno == EACCES)
		fd = memfd_create(DELIVERY_NAME, flags | MFD_NOEXEC_SEAL);
	return fd < 0 && errno == EINVAL ? memfd_create(DELIVERY_NAME, flags) : fd;
}

/* Whether there is an aligned place in the file with the magic and our ABI. */
static bool has_request(const unsigned char *file, size_t bytes)
{
	for (size_t at = 0; at + sizeof(struct attach_request) <= bytes; at += sizeof(uint64_t)) {
		struct attach_request request;
		memcpy(&request, file + at, sizeof(request));
		if (request.magic == ATTACH_REQUEST_MAGIC && request.abi == REGION_ABI)
			return true;
	}
	return false;
}

static int copy(int to, int from, size_t bytes)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	unsigned char *file = malloc(bytes);
	int error = file ? 0 : -ENOMEM;
	if (!error && pread(from, file, bytes, 0) != (ssize_t)bytes)
		error = -EIO;
	if (!error && !has_request(file, bytes))
		error = -ENOEXEC;
	if (!error && pwrite(to, file, bytes, 0) != (ssize_t)bytes)
		error = -errno;
	if (!error && fcntl(to, F_ADD_SEALS, seals) != 0)
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
	int fd = make_file(&delivery->executable), error = fd < 0 ? -errno : 0;
	if (!error && (uint64_t)status.st_size > LIBRARY_MOST_BYTES)
		error = -EFBIG;
	if (!error)
		error = copy(fd, from, (size_t)status.st_size);
	close(from);
	if (error && fd >= 0)
		close(fd);
	delivery->fd = error ? -1 : fd;
	return error;
}
