/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_LINUX_MEMORY_FILE_H
#define SAMPLER_LINUX_MEMORY_FILE_H

#include <sys/types.h>

/*
 * Makes a file in memory (memfd_create(2)) that can be sealed, and that nobody can execute: vm.memfd_noexec =
 * 2 demands that since Linux 6.3. Returns a descriptor or -errno.
 */
int memory_file_create(const char *name);

/* The same, but the file may be executed. -EACCES if vm.memfd_noexec refuses that. */
int memory_file_create_executable(const char *name);

/* The device of all shared memory that has no mounted file system; 0 if unknown. */
dev_t memory_file_device(void);

/*
 * Opens another process' file in memory for reading and writing. The mapping at `path` may be of any other
 * file by now, on a file system that never answers. So the file's device is found out first, without asking
 * its file system. Returns a descriptor, or -errno (-EINVAL if it is no file in memory).
 */
int memory_file_open(const char *path);

#endif
