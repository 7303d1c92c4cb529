/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon's control socket is, and the file `off` beside it, which turns everything off. */
#ifndef SAMPLER_CONTROL_CONTROL_PATH_H
#define SAMPLER_CONTROL_CONTROL_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
	CONTROL_PATH_BYTES = 108, /* as in sockaddr_un */
	CONTROL_PATHS = 2,
};

#define CONTROL_PATH_ROOT "/run/heaptap/control"
#define CONTROL_OFF_NAME  "off"

/* For the daemon of that user: /run/heaptap/control for root, else $XDG_RUNTIME_DIR/heaptap/control, or
 * /tmp/heaptap-UID/control without that variable. `given` (--socket) goes first, then $HEAPTAP_SOCKET. 0 or
 * -ENAMETOOLONG. */
int control_path_own(const char *given, uid_t uid, char path[CONTROL_PATH_BYTES]);

/*
 * For a client: the paths to try, in order. --socket, else $HEAPTAP_SOCKET, is the only one if there is
 * such; else the user's own daemon, then the machine's. Returns how many. *chosen: a user named it, so
 * anybody may serve it; otherwise only root or we may. Root names it by --socket alone.
 */
size_t control_path_candidates(
    const char *given, uid_t uid, char paths[CONTROL_PATHS][CONTROL_PATH_BYTES], bool *chosen);

/* "/run/heaptap/off" for "/run/heaptap/control". 0 or -ENAMETOOLONG. */
int control_path_off(const char *socket_path, char path[CONTROL_PATH_BYTES]);

#endif
