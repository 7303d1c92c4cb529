/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where `heaptap snapshot` finds a sampler: a Unix socket of its own, <folder>/<pid of the sampler>.sock.
 *
 * Folder: heaptap in $XDG_RUNTIME_DIR if that is set and ours, else /tmp/heaptap-<uid>; made with mode 0700,
 * refused by both sides if anybody else owns it or may write there. Asking takes the sampler's own user, or
 * root; answering takes the folder's owner: SO_PEERCRED, looked at by both sides of every connection.
 *
 * SOCK_SEQPACKET, one message a packet, of text:
 *
 *     -> "snapshot 4711" or "snapshot all"
 *     <- "unknown"                          it watches no such process
 *     <- "asked 1"                          it does: of how many processes there will be word; at once
 *     <- "written 4711 /path/to/profile"    one per process, when its file is complete
 *     <- "failed 4711 No space left on device"
 *        end of file                        that was all
 *
 * A client that does not read what it asked for is dropped.
 */
#ifndef SAMPLER_SESSION_CONTROL_H
#define SAMPLER_SESSION_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONTROL_CLIENTS = 16, CONTROL_MESSAGE_BYTES = 4352, CONTROL_FOLDER_BYTES = 80 };

struct control;

/* `ask` is called with a request: pid 0 means all. It returns for how many processes control_answer will be
 * called. */
struct control *control_open(
    int epoll_fd, uint32_t (*ask)(void *context, pid_t pid, uint64_t asker), void *context, int *error);
void control_close(struct control *control); /* removes the socket; NULL is fine */

/* Is this descriptor ours? Then deals with what has come. */
bool control_event(struct control *control, int fd);

/* One of the snapshots that `asker` waits for is complete, or not to be had (-errno). */
void control_answer(struct control *control, uint64_t asker, pid_t pid, const char *path, int error);

/* The folders in which there may be sockets, the usual one first; for the asking side. Returns how many. */
enum { CONTROL_FOLDERS = 3 };
size_t control_folders(char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES], uid_t uid);

/* Opens one for reading. Returns a descriptor; -EPERM: it is not `owner`'s, or others may write there;
 * -ENOTDIR: it is another thing, or a link; or -errno. What is done in it is done by the descriptor. */
int control_folder_open(const char *folder, uid_t owner);

#endif
