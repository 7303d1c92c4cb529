/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that another process lends: its descriptors, by the path /proc/PID/fd/N.
 *
 * The path names a process by its number, and that may be the wrong process: in another pid namespace, or
 * after the sampler has ended. The path may also be forged: somebody set it in the environment and then
 * started a setuid program. So the owner of the file is checked first, on a descriptor that is opened by
 * O_PATH. Only then is the file opened and read: to open a device can have an effect already (a watchdog),
 * and a named pipe may belong to anybody.
 *
 * The owner must be root or the program's own user. No other user can make such a file. In a user namespace
 * all users without a number there share one uid. There the file is opened with O_NOATIME: the kernel
 * compares the true uids, and lets only the owner do that.
 *
 * Only system calls that the loader makes, too, are made here.
 */
#ifndef PRELOAD_OWNED_FILE_H
#define PRELOAD_OWNED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whose files are taken beside those of root and of our own user. */
enum owned_file_others {
	OWNED_FILE_NO_OTHERS,
	OWNED_FILE_UNNUMBERED, /* those of users without a number in our user namespace */
};

/* True for root and for our own user; false for the uid that users without a number share. */
bool owned_file_is_by(uid_t uid);

/* Opens the folder of a path of the form /proc/PID/fd/N, for owned_file_open(). The descriptor stays with
 * that process, even if another process gets its number later. -1 if there is no such folder. */
int owned_file_folder(const char *path);

/* Opens descriptor N of the path in that folder, close-on-exec. type: S_IFREG or S_IFIFO; flags as of
 * open(2). Returns a descriptor, and the file's size in *bytes. -1 if there is no descriptor N, or if its
 * file belongs to another user. */
int owned_file_open(
    int folder, const char *path, mode_t type, int flags, enum owned_file_others others, uint64_t *bytes);

/* The same check for a regular file that is open already. */
bool owned_file_check(int fd, enum owned_file_others others, uint64_t *bytes);

/* True if no process can write to this file in memory any more (F_SEAL_WRITE). */
bool owned_file_is_sealed(int fd);

#endif
