/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/raw_file.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int raw_file_open(const char *path, int flags)
{
	return raw_file_open_in(AT_FDCWD, path, flags);
}

int raw_file_open_in(int folder, const char *path, int flags)
{
	return (int)syscall(SYS_openat, folder, path, flags | O_CLOEXEC, 0);
}

void raw_file_close(int fd)
{
	syscall(SYS_close, fd);
}

ssize_t raw_file_read(int fd, void *to, size_t bytes)
{
	return syscall(SYS_read, fd, to, bytes);
}

ssize_t raw_file_read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return syscall(SYS_pread64, fd, to, bytes, offset);
}
