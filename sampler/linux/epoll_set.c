/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/epoll_set.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

int epoll_set_add(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void epoll_set_remove(int epoll_fd, int fd)
{
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void epoll_set_close(int epoll_fd, int fd)
{
	epoll_set_remove(epoll_fd, fd);
	close(fd);
}
