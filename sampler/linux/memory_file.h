/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLER_LINUX_MEMORY_FILE_H
#define SAMPLER_LINUX_MEMORY_FILE_H

/*
 * A file in memory (memfd_create(2)) that can be sealed, and that nobody can execute: what vm.memfd_noexec =
 * 2 demands, Linux 6.3. Older kernels do not know that it can be demanded. Returns a descriptor or -errno.
 */
int memory_file_create(const char *name);

#endif
