/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders with the control sockets of samplers: <folder>/<pid of the sampler>.sock.
 *
 * The folder is $XDG_RUNTIME_DIR/heaptap if that variable is set and the folder is ours, else
 * /tmp/heaptap-<uid>. It is made with mode 0700. Both sides refuse a folder that another user owns or may
 * write to.
 */
#ifndef SAMPLER_CORE_CONTROL_FOLDER_H
#define SAMPLER_CORE_CONTROL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CONTROL_FOLDERS = 3, CONTROL_FOLDER_BYTES = 80 };

/* The folders that may hold sockets of that user, the usual one first. Returns their number. */
size_t control_folders(char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES], uid_t uid);

/* Opens such a folder for reading. Returns a descriptor or -errno. -EPERM: it does not belong to `owner`,
 * or others may write to it; -ENOTDIR: it is no folder, or a symbolic link. Use only the descriptor to
 * access the files in it. */
int control_folder_open(const char *folder, uid_t owner);

/* Calls `visit` for each possible folder: our own first, then, if we are root, those of all users. Stops
 * when visit returns something other than 0. folder_fd: as control_folder_open() returns it; it is closed
 * afterwards. */
void control_folder_each(
    int (*visit)(void *context, int folder_fd, const char *folder, uid_t owner), void *context);

/* Is that a socket's name: "4711.sock"? */
bool control_folder_is_socket(const char *name);

/* Connects to a socket in such a folder. The owner of the folder must serve it. Waits patience_ms at most;
 * 0: does not wait. Returns a descriptor or -errno. -ECONNREFUSED: the sampler is gone; -EPERM: another
 * user serves it. */
int control_folder_connect(int folder_fd, const char *name, uid_t owner, int patience_ms);

#endif
