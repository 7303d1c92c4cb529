/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/library_copy.h"

#include "proto/attach_request.h"
#include "proto/region.h"
#include "sampler/linux/memory_file.h"
#include "sampler/linux/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIBRARY_MOST_BYTES = 16 << 20 };

static int make_file(bool *executable)
{
	int fd = memory_file_create_executable(ATTACH_LIBRARY_NAME);

	*executable = fd != -EACCES;
	return *executable ? fd : memory_file_create(ATTACH_LIBRARY_NAME);
}

/* Does the file have the magic and our ABI at an aligned place? */
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

int library_copy_open(struct library_copy *library_copy, const char *path)
{
	struct stat status;

	*library_copy = (struct library_copy){.fd = -1};
	int from = regular_file_open(AT_FDCWD, path, 0, &status);
	if (from < 0)
		return from;
	int fd = make_file(&library_copy->executable), error = fd < 0 ? fd : 0;
	if (!error && (uint64_t)status.st_size > LIBRARY_MOST_BYTES)
		error = -EFBIG;
	if (!error)
		error = copy(fd, from, (size_t)status.st_size);
	close(from);
	if (error && fd >= 0)
		close(fd);
	library_copy->fd = error ? -1 : fd;
	return error;
}
