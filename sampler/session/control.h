/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket, through which `heaptap snapshot` reaches a sampler: <folder>/<pid of the sampler>.sock.
 *
 * Folder: heaptap in $XDG_RUNTIME_DIR if that is set and ours, else /tmp/heaptap-<uid>; made with mode 0700,
 * both sides refuse it if another user owns it or may write there. The client must be the sampler's user or
 * root, the server the folder's owner: both sides check SO_PEERCRED for every connection.
 *
 * SOCK_SEQPACKET, one message a packet, of text:
 *
 *     -> "snapshot 4711", "snapshot all", or "snapshot session 4711": of all processes of the session if
 *                                           4711 is one of them, its `heaptap record` or its sampler
 *     <- "busy"                             CONTROL_CLIENTS others are waiting: try again later. Sent at once
 *     <- "unknown"                          it profiles no such process
 *     <- "asked 1"                          it does; how many answers will follow. Sent at once
 *     <- "written 4711 /path/to/profile"    for each process, when its file is complete
 *     <- "failed 4711 No space left on device"
 *        end of file                        nothing else follows
 *
 * A client that does not read its answers is disconnected.
 */
#ifndef SAMPLER_SESSION_CONTROL_H
#define SAMPLER_SESSION_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONTROL_CLIENTS = 16, CONTROL_MESSAGE_BYTES = 4352, CONTROL_FOLDER_BYTES = 80 };

struct control;

/* `ask` is called with a request: pid 0 means all, -PID the session that PID belongs to. It returns for how
 * many processes control_answer will be called. */
struct control *control_open(
    int epoll_fd, uint32_t (*ask)(void *context, pid_t pid, uint64_t asker), void *context, int *error);
void control_close(struct control *control); /* removes the socket; NULL is fine */

/* If the descriptor is one of ours, handles what has arrived and returns true. */
bool control_event(struct control *control, int fd);

/* One of the snapshots that `asker` waits for is complete, or could not be made (-errno). */
void control_answer(struct control *control, uint64_t asker, pid_t pid, const char *path, int error);

/* For the client: the folders in which there may be sockets, the usual one first. Returns how many. */
enum { CONTROL_FOLDERS = 3 };
size_t control_folders(char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES], uid_t uid);

/* Opens one for reading. Returns a descriptor; -EPERM: it does not belong to `owner`, or others may write
 * there; -ENOTDIR: it is no folder, or a symbolic link; or -errno. Use only the descriptor to access files in
 * it. */
int control_folder_open(const char *folder, uid_t owner);

#endif
