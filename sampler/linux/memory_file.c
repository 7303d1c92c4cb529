/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/memory_file.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MFD_NOEXEC_SEAL /* Debian 12's headers are older */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

int memory_file_create(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}
