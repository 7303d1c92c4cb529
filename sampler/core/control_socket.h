/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's control socket in the file system. */
#ifndef SAMPLER_CORE_CONTROL_SOCKET_H
#define SAMPLER_CORE_CONTROL_SOCKET_H

#include <sys/types.h>

/* Binds a socket to `path` (control_path_own()) with mode 0600, or 0660 for `group` (control_peer.h).
 * Makes its folder (0700 or 0750) if that is missing, and replaces a socket that nobody serves. Returns a
 * descriptor for control_server_new(), or -errno. -EADDRINUSE: a daemon serves the path; -EEXIST: it is no
 * socket; -EPERM: the folder is not ours, or others may write to it. */
int control_socket_bind(const char *path, gid_t group);

/* Connects, and waits 3 s at most. Returns a descriptor or -errno; -ECONNREFUSED if nobody serves the
 * path. */
int control_socket_connect(const char *path);

#endif
