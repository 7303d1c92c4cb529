/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders with the control sockets of samplers: <folder>/<pid of the sampler>.sock.
 *
 * heaptap in $XDG_RUNTIME_DIR if that is set and ours, else /tmp/heaptap-<uid>; made with mode 0700, both
 * sides refuse it if another user owns it or may write there.
 */
#ifndef SAMPLER_CONTROL_CONTROL_FOLDER_H
#define SAMPLER_CONTROL_CONTROL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CONTROL_FOLDERS = 3, CONTROL_FOLDER_BYTES = 80 };

/* The folders in which there may be sockets of that user, the usual one first. Returns how many. */
size_t control_folders(char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES], uid_t uid);

/* Opens one for reading. Returns a descriptor; -EPERM: it does not belong to `owner`, or others may write
 * there; -ENOTDIR: it is no folder, or a symbolic link; or -errno. Use only the descriptor to access files in
 * it. */
int control_folder_open(const char *folder, uid_t owner);

/* Calls `visit` for each folder there may be, our own first, and if we are root those of all users, until it
 * returns something other than 0. folder_fd: as control_folder_open returns it; it is closed afterwards. */
void control_folder_each(
    int (*visit)(void *context, int folder_fd, const char *folder, uid_t owner), void *context);

/* Is that a socket's name: "4711.sock"? */
bool control_folder_is_socket(const char *name);

/* Connects to a socket in such a folder, which must be served by its owner. Waits patience_ms at most, 0: not
 * at all. Returns a descriptor; -ECONNREFUSED: its sampler is gone; -EPERM; or -errno. */
int control_folder_connect(int folder_fd, const char *name, uid_t owner, int patience_ms);

#endif
