/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/event_loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

int event_loop_add(int epoll_fd, struct event_source *source, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	source->fd = fd;
	return 0;
}

void event_loop_remove(int epoll_fd, struct event_source *source)
{
	if (source->fd >= 0)
		(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->fd = -1;
}

/* One event at a time, so that no event of a source waits here that a call removes or frees. */
int event_loop_wait(int epoll_fd, int timeout_ms)
{
	struct epoll_event event;
	int count;

	for (int round = 0; round < 64; round++) {
		count = epoll_wait(epoll_fd, &event, 1, round ? 0 : timeout_ms);
		if (count < 0 && errno != EINTR)
			return -errno;
		if (count <= 0)
			return 0;
		struct event_source *source = event.data.ptr;
		source->ready(source, event.events);
	}
	return 0;
}
