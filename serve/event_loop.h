/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that the web process waits for, and what is called when one is ready. */
#ifndef SERVE_EVENT_LOOP_H
#define SERVE_EVENT_LOOP_H

#include <stdint.h>

struct event_source {
	int fd; /* -1: not waited for */
	void (*ready)(struct event_source *source, uint32_t events);
};

/* events: as for epoll_ctl(2). 0 or -errno. */
int event_loop_add(int epoll_fd, struct event_source *source, int fd, uint32_t events);
void event_loop_remove(int epoll_fd, struct event_source *source);

/* Waits once, timeout_ms at most, and calls ready() of sources that are ready. ready() may remove its own
 * source and others; removed sources are not called. 0 or -errno. */
int event_loop_wait(int epoll_fd, int timeout_ms);

#endif
