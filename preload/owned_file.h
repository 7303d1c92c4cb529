/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that another process lends: descriptors of its own, /proc/PID/fd/N. A path leads to whatever process
 * has that number now: another one in a pid namespace, or any after the sampler has ended; and the path may
 * have been put into the environment by whoever started a program that became root then. So a file is asked
 * whose it is before it is opened for more than that, and before a byte of it is believed: to open a device
 * can do something already (a watchdog), and a named pipe may be anybody's.
 *
 * The owner is who made the file, which no other user can imitate: root, or the program's own user. In a user
 * namespace all users without a number there have one and the same. Then the kernel is asked whether it is
 * our own, as it compares the true numbers: who is not a file's owner may not open it with O_NOATIME.
 *
 * The system calls are the loader's own.
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

/* Root or our own user; not the number of those without one. */
bool owned_file_is_by(uid_t uid);

/* The folder /proc/PID/fd that a path of this very form names, as a descriptor for owned_file_open; or -1.
 * It is that process' for good, whoever has its number later. */
int owned_file_folder(const char *path);

/* Opens the N of such a path in that folder, close-on-exec. type: S_IFREG or S_IFIFO; flags as of open(2). A
 * descriptor and the file's size, or -1: nobody has such a descriptor, or it is none of root's or ours. */
int owned_file_open(
    int folder, const char *path, mode_t type, int flags, enum owned_file_others others, uint64_t *bytes);

/* The same question of a regular file that is open already. */
bool owned_file_check(int fd, enum owned_file_others others, uint64_t *bytes);

/* Whether nobody can write to an open file in memory any more (F_SEAL_WRITE). */
bool owned_file_is_sealed(int fd);

#endif
