/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region socket: the second way to a region, for a program run that may not open /proc/<sampler>/fd.
 * It was executed by another user than the sampler's (a server that drops root and then executes its
 * workers; setpriv, gosu), with fewer capabilities (heaptap has some by setcap or from a unit), or in a
 * user namespace of its own (unshare, rootless containers). It connects to an abstract socket, sends the
 * session's cookie, and receives the region's descriptors. Anybody may bind the name when the sampler has
 * ended, so the other side must be root or our own user, and so must be the owner of the region, which the
 * caller asks.
 *
 * Here alone the target waits for the sampler: at its start, for REGION_SOCKET_WAIT_MS at most in all. It
 * waits for the answer, since only a process that runs can send a descriptor. Where strangers fill the
 * backlog (sampler/intake/region_socket.c) it waits for the connection too, within the same time. Where a
 * seccomp filter is in force the target does not try: the filter might kill it for a socket.
 */
#ifndef PRELOAD_REGION_SOCKET_H
#define PRELOAD_REGION_SOCKET_H

#include <stdint.h>

enum {
	REGION_SOCKET_WAIT_MS = 200,
};

/* The descriptors of a region's two files (proto/region.h), for the caller to close; -1: none. */
struct region_files {
	int fd, buffers_fd;
};

/* pool_path: as in REGION_ENV. Both descriptors, or none. */
struct region_files region_socket_ask(const char *pool_path, uint64_t cookie);

/* Likewise, from a socket in the file system (a process that is attached to, see proto/region.h). Nothing is
 * sent: the other side knows the process from the kernel. */
struct region_files region_socket_receive(const char *path);

#endif
