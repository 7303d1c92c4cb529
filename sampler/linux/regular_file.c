/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/regular_file.h"

#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int regular_file_open(int dirfd, const char *path, int in_root, struct stat *status)
{
	/* glibc has no wrapper for openat2, the only call that resolves symlinks inside another root. */
	struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC | (in_root ? O_NOFOLLOW : 0),
	    .resolve = in_root ? RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS : 0,
	};
	int location = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	/* Before Linux 5.6, or refused by a container's filter: the same for a plain path, and for a name,
	 * which leads out of no folder. */
	if (location < 0 && (errno == ENOSYS || errno == EPERM) && (!in_root || !strchr(path, '/')))
		location = openat(dirfd, path, (int)how.flags);
	return location < 0 ? -errno : regular_file_reopen(location, status);
}
