/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into the sampler: a process' executable can be read by readlink, and is gone when stat looks for
 * it, as if the process had ended in between.
 */
/* build: -shared -fPIC */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int stat(const char *restrict path, struct stat *restrict status)
{
	const size_t length = strlen(path);

	if (strncmp(path, "/proc/", 6) == 0 && length > 4 && strcmp(path + length - 4, "/exe") == 0) {
		errno = ENOENT;
		return -1;
	}
	return fstatat(AT_FDCWD, path, status, 0);
}
