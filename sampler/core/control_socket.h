/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's control socket in the file system, and the file `off` beside it, which turns everything
 * off. */
#ifndef SAMPLER_CORE_CONTROL_SOCKET_H
#define SAMPLER_CORE_CONTROL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
	CONTROL_PATH_BYTES = 108, /* as in sockaddr_un */
	CONTROL_PATHS = 2,
};

#define CONTROL_PATH_ROOT "/run/heaptap/control"
#define CONTROL_OFF_NAME  "off"

/* The path for the daemon of that user. It is `given` (--socket) if there is one, or else $HEAPTAP_SOCKET.
 * Otherwise root has /run/heaptap/control, and other users have $XDG_RUNTIME_DIR/heaptap/control, or
 * /tmp/heaptap-UID/control without that variable. 0 or -ENAMETOOLONG. */
int control_path_own(const char *given, uid_t uid, char path[CONTROL_PATH_BYTES]);

/*
 * The paths that a client tries, in order. If there is --socket, or else $HEAPTAP_SOCKET, it is the only
 * path. Otherwise the paths are those of the user's own daemon and of the machine's daemon. Returns their
 * number. *chosen: the user has named the path, so any user may serve it; otherwise only root or our user
 * may. For root, the variable is not such a choice.
 */
size_t control_path_candidates(
    const char *given, uid_t uid, char paths[CONTROL_PATHS][CONTROL_PATH_BYTES], bool *chosen);

/* "/run/heaptap/off" for "/run/heaptap/control". 0 or -ENAMETOOLONG. */
int control_path_off(const char *socket_path, char path[CONTROL_PATH_BYTES]);

/* Binds a socket to `path` (control_path_own()) with mode 0600, or 0660 for `group` (control_peer.h).
 * Makes its folder (0700 or 0750) if that is missing, and replaces a socket that nobody serves. Returns a
 * descriptor for control_server_new(), or -errno. -EADDRINUSE: a daemon serves the path; -EEXIST: it is no
 * socket; -EPERM: the folder is not ours, or others may write to it. */
int control_socket_bind(const char *path, gid_t group);

/* Connects, and waits 3 s at most. Returns a descriptor or -errno; -ECONNREFUSED if nobody serves the
 * path. */
int control_socket_connect(const char *path);

#endif
