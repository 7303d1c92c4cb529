/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's control socket, and the file `off` beside it. */
#include "pprof/text/log_line.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/core/control_peer.h"
#include "sampler/core/control_socket.h"
#include "sampler/core/requests.h"
#include "sampler/linux/epoll_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int daemon_socket_open(struct daemon *d)
{
	const gid_t group = control_peer_group();
	const char *slash = strrchr(d->socket_path, '/');
	char path[CONTROL_PATH_BYTES], prefix[CONTROL_PATH_BYTES + 16];
	const int fd = control_socket_bind(d->socket_path, group);

	if (fd < 0) {
		log_line(
		    "%s: %s", d->socket_path, fd == -EADDRINUSE ? "another daemon serves it" : strerror(-fd));
		return fd;
	}
	snprintf(prefix, sizeof(prefix), "%.*s.%d.", slash ? (int)(slash - d->socket_path) + 1 : 0,
	    d->socket_path, (int)getpid());
	const int error = requests_open(&d->core, fd, group, prefix);
	if (control_path_off(d->socket_path, path) == 0)
		off_switch_open(&d->off, path);
	if (d->off.fd >= 0)
		(void)epoll_set_add(d->core.epoll_fd, d->off.fd);
	return error;
}

void daemon_socket_close(struct daemon *d)
{
	const bool served = d->core.server != NULL;

	requests_close(&d->core);
	if (served)
		unlink(d->socket_path);
	off_switch_close(&d->off);
}
