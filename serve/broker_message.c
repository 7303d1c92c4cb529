/* SPDX-License-Identifier: Apache-2.0 */
/* The part of broker.h that the web process has too. */
#include "serve/broker.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union ancillary {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

int broker_message_send(int fd, const void *message, size_t bytes, int passed_fd)
{
	union ancillary ancillary = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec data = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
	struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};

	if (passed_fd >= 0) {
		header.msg_control = &ancillary;
		header.msg_controllen = sizeof(ancillary.room);
		memcpy(CMSG_DATA(&ancillary.header), &passed_fd, sizeof(passed_fd));
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int descriptor_of(struct msghdr *header)
{
	int fd = -1;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at))
		if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS &&
		    at->cmsg_len == CMSG_LEN(sizeof(fd)))
			memcpy(&fd, CMSG_DATA(at), sizeof(fd));
	return fd;
}

int broker_message_receive(int fd, void *message, size_t bytes, int *passed_fd)
{
	union ancillary ancillary;
	struct iovec data = {.iov_base = message, .iov_len = bytes};
	struct msghdr header = {.msg_iov = &data,
	    .msg_iovlen = 1,
	    .msg_control = &ancillary,
	    .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t got;

	*passed_fd = -1;
	do
		got = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got < 0 ? -errno : 0;
	*passed_fd = descriptor_of(&header);
	if ((size_t)got == bytes && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 1;
	if (*passed_fd >= 0)
		close(*passed_fd);
	*passed_fd = -1;
	return -EPROTO;
}
