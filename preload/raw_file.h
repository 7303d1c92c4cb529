/* SPDX-License-Identifier: Apache-2.0 */
/* Files by the kernel's own calls: the libc's are cancellation points, and in a process that is attached to
 * the calling thread may have been cancelled. */
#ifndef PRELOAD_RAW_FILE_H
#define PRELOAD_RAW_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Close-on-exec. A descriptor or -1. */
int raw_file_open(const char *path, int flags);
int raw_file_open_in(int folder, const char *path, int flags);
void raw_file_close(int fd);

/* Bytes read, or -1. */
ssize_t raw_file_read(int fd, void *to, size_t bytes);
ssize_t raw_file_read_at(int fd, void *to, size_t bytes, uint64_t offset);

#endif
