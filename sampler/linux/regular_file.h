/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a file whose path comes from an untrusted process. A path can name a FIFO (open blocks), a tape or a
 * watchdog (open has effects). So the type is checked first, and only a regular file is opened.
 */
#ifndef SAMPLER_LINUX_REGULAR_FILE_H
#define SAMPLER_LINUX_REGULAR_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Opens path for reading, close-on-exec, under the folder dirfd (AT_FDCWD as usual). With in_folder, the file
 * must be below dirfd, on its mount, and reached by no symlink: a user who may mount something there (in a
 * namespace of their own) could show us any file. Returns a descriptor and its *status, or -errno (-EINVAL:
 * not a regular file; -EXDEV: of another mount).
 */
int regular_file_open(int dirfd, const char *path, int in_folder, struct stat *status);

/* The same for a file that was found already: `location` is a descriptor of the file, from open(O_PATH). This
 * function closes `location` in any case. */
int regular_file_reopen(int location, struct stat *status);

/* Reads exactly so many bytes from OFFSET on (an address if the file is /proc/PID/mem). Returns 0 or -errno;
 * -EIO if the file ends before. */
int regular_file_read(int fd, void *to, size_t bytes, uint64_t offset);

/* May everybody read the open file: by its mode, and by those of all folders that now lead to it? False if
 * that is unknown. */
bool regular_file_is_public(int fd, const struct stat *status);

/* The number of the mount through which a descriptor was opened, or -1 if it cannot be read. Works before
 * Linux 5.8 too (STATX_MNT_ID). A device number is not enough: one device may be mounted in many places. */
int regular_file_mount(int fd);

#endif
