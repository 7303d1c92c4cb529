/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/regular_file.h"

#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

int regular_file_reopen(int location, struct stat *status)
{
	char self[PROC_PATH_BYTES];
	int fd = -EINVAL;

	if (fstat(location, status) == 0 && S_ISREG(status->st_mode)) {
		fd = open(proc_fd_path(self, location), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			fd = -errno;
	}
	close(location);
	return fd;
}

int regular_file_mount(int fd)
{
	char name[32], line[128];
	int mount = -1;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	FILE *info = proc_open_text(getpid(), name);
	while (info && mount < 0 && fgets(line, sizeof(line), info))
		(void)sscanf(line, "mnt_id: %d", &mount);
	if (info)
		fclose(info);
	return mount;
}

/* For kernels before Linux 5.6, or if a container's filter refuses openat2. A name without slashes leads out
 * of no folder: only its mount has to be checked. */
static int open_without_openat2(int dirfd, const char *path, int flags, int in_folder)
{
	if (in_folder && strchr(path, '/'))
		return -ENOSYS;
	int location = openat(dirfd, path, flags);
	if (location < 0)
		return -errno;
	const int mount = in_folder ? regular_file_mount(location) : 0;
	if (!in_folder || (mount >= 0 && mount == regular_file_mount(dirfd)))
		return location;
	close(location);
	return -EXDEV;
}

int regular_file_open(int dirfd, const char *path, int in_folder, struct stat *status)
{
	struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC | (in_folder ? O_NOFOLLOW : 0),
	    .resolve = in_folder ? RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS : 0,
	};
	/* glibc has no wrapper for openat2. */
	int location = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	if (location < 0 && (errno == ENOSYS || errno == EPERM))
		location = open_without_openat2(dirfd, path, (int)how.flags, in_folder);
	else if (location < 0)
		location = -errno;
	return location < 0 ? location : regular_file_reopen(location, status);
}

int regular_file_read(int fd, void *to, size_t bytes, uint64_t offset)
{
	for (size_t done = 0; done < bytes;) {
		const ssize_t got = pread(fd, (char *)to + done, bytes - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		done += (size_t)got;
	}
	return 0;
}

bool regular_file_is_public(int fd, const struct stat *status)
{
	char path[PATH_MAX], self[PROC_PATH_BYTES];
	struct stat folder, named;
	const ssize_t length = readlink(proc_fd_path(self, fd), path, sizeof(path) - 1);

	if (!(status->st_mode & S_IROTH) || length <= 0 || *path != '/')
		return false;
	path[length] = '\0';
	if (stat(path, &named) != 0 || named.st_dev != status->st_dev || named.st_ino != status->st_ino)
		return false;
	for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		if (stat(*path ? path : "/", &folder) != 0 || !(folder.st_mode & S_IXOTH))
			return false;
	}
	return true;
}
