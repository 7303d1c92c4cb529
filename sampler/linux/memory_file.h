/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_LINUX_MEMORY_FILE_H
#define SAMPLER_LINUX_MEMORY_FILE_H

#include <sys/types.h>

/*
 * A file in memory (memfd_create(2)) that can be sealed, and that nobody can execute: what vm.memfd_noexec =
 * 2 demands, Linux 6.3. Older kernels do not know that it can be demanded. Returns a descriptor or -errno.
 */
int memory_file_create(const char *name);

/* One that may be executed. -EACCES: vm.memfd_noexec refuses it. */
int memory_file_create_executable(const char *name);

/* The device of all shared memory without a file system of its own; 0: not known. */
dev_t memory_file_device(void);

/*
 * Opens for reading and writing what may be such a file, of another process: a mapping of that name may be
 * of any file by now, of a file system that never answers. So it is found out where the file is, without
 * asking that, before it is opened. Returns a descriptor or -errno (-EINVAL: no such file).
 */
int memory_file_open(const char *path);

#endif
