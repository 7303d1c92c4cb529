/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/memory_file.h"

#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL /* Debian 12's headers are older */
#define MFD_NOEXEC_SEAL 0x0008U
#define MFD_EXEC        0x0010U
#endif

/* Kernels before Linux 6.3 do not know the flag that says whether the file may be executed. */
static int create(const char *name, unsigned int whether)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | whether);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

int memory_file_create(const char *name)
{
	return create(name, MFD_NOEXEC_SEAL);
}

int memory_file_create_executable(const char *name)
{
	return create(name, MFD_EXEC);
}

dev_t memory_file_device(void)
{
	static dev_t device;
	struct stat status;
	int fd = device ? -1 : memory_file_create("heaptap-device");

	if (fd >= 0 && fstat(fd, &status) == 0)
		device = status.st_dev;
	if (fd >= 0)
		close(fd);
	return device;
}

int memory_file_open(const char *path)
{
	char self[PROC_PATH_BYTES];
	struct statx facts;
	int fd = -EINVAL, location = open(path, O_PATH | O_CLOEXEC);

	if (location < 0)
		return -errno;
	if (statx(location, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &facts) == 0 &&
	    makedev(facts.stx_dev_major, facts.stx_dev_minor) == memory_file_device()) {
		fd = open(proc_fd_path(self, location), O_RDWR | O_CLOEXEC | O_NONBLOCK);
		fd = fd < 0 ? -errno : fd;
	}
	close(location);
	return fd;
}
