/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/region_socket.h"

#include "preload/owned_file.h"
#include "preload/raw_file.h"
#include "proto/region_pool.h"

#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { RECEIVE_WAIT_SECONDS = 2 }; /* the other side is there, and may wait for a CPU */

/* The coarse clock needs no time stamp counter, which may be forbidden here (PR_SET_TSC survives an exec). */
static int64_t now_us(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static const struct region_files none = {-1, -1};

/* What has arrived. By the kernel's own call, see raw_file.h. Where there is no number left for the second
 * descriptor, the kernel hands out the first alone. */
static struct region_files receive(int socket_fd)
{
	char byte;
	struct region_files files = none;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(files))];
	} control = {0};
	struct iovec data = {&byte, 1};
	struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	if (syscall(SYS_recvmsg, socket_fd, &message, MSG_CMSG_CLOEXEC) < 1 ||
	    control.header.cmsg_level != SOL_SOCKET || control.header.cmsg_type != SCM_RIGHTS)
		return none;
	if (control.header.cmsg_len == CMSG_LEN(sizeof(files))) {
		memcpy(&files, CMSG_DATA(&control.header), sizeof(files));
	} else if (control.header.cmsg_len == CMSG_LEN(sizeof(int))) {
		memcpy(&files.fd, CMSG_DATA(&control.header), sizeof(int));
		raw_file_close(files.fd);
		files.fd = -1;
	}
	return files;
}

/* wait_ms not positive: what has arrived already will do. */
static bool is_answered(int socket_fd, int64_t wait_ms)
{
	struct pollfd ready = {socket_fd, POLLIN, 0};

	return poll(&ready, 1, wait_ms > 0 ? (int)wait_ms : 0) == 1;
}

/* -1: there is no such socket. */
static int connect_to(const struct sockaddr_un *address, socklen_t address_bytes)
{
	/* Strangers may keep the backlog full; then a place becomes free now and then. We wait for it, since
	 * a program run that gave up could not be counted: the counters are in memory that it cannot map. */
	const struct timeval patience = {.tv_usec = REGION_SOCKET_WAIT_MS * 1000};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)address, address_bytes) == 0)
		return fd;
	close(fd);
	return -1;
}

struct region_files region_socket_ask(const char *pool_path, uint64_t cookie)
{
	struct region_files files = none;
	struct sockaddr_un address;
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t peer_bytes = sizeof(peer);
	const int64_t end_us = now_us() + REGION_SOCKET_WAIT_MS * INT64_C(1000);
	int socket_fd = connect_to(&address, region_socket_address(pool_path, cookie, &address));

	if (socket_fd < 0)
		socket_fd = connect_to(&address, region_socket_file(pool_path, cookie, &address));
	if (socket_fd < 0)
		return none;
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0 &&
	    owned_file_is_by(peer.uid) &&
	    send(socket_fd, &cookie, sizeof(cookie), MSG_NOSIGNAL) == (ssize_t)sizeof(cookie) &&
	    is_answered(socket_fd, (end_us - now_us()) / 1000))
		files = receive(socket_fd);
	close(socket_fd);
	return files;
}

struct region_files region_socket_receive(const char *path)
{
	struct region_files files = none;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int socket_fd = -1;

	if (strlen(path) < sizeof(address.sun_path))
		socket_fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (socket_fd < 0)
		return none;
	strcpy(address.sun_path, path);
	struct pollfd ready = {socket_fd, POLLIN, 0};
	struct timespec wait = {.tv_sec = RECEIVE_WAIT_SECONDS};
	if (syscall(SYS_connect, socket_fd, &address, sizeof(address)) == 0 &&
	    syscall(SYS_ppoll, &ready, 1, &wait, NULL, (size_t)8) == 1)
		files = receive(socket_fd);
	raw_file_close(socket_fd);
	return files;
}
