/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/pace.h"

#include <poll.h>
#include <time.h>

enum {
	TICK_BUSY_NS = 2 * 1000000,  /* something came in the last tick */
	TICK_IDLE_NS = 20 * 1000000, /* what an idle program's SIGUSR1 waits at most */
	IDLE_AFTER = 100,            /* quiet busy ticks before the idle one */
	FLOOD = 256,                 /* stacks; 64 cost the same, 1024 half as much again (their lines leave the cache) */
	LEAST_NS = 30 * 1000,        /* a sleep that is shorter is none */
};

void pace_look(struct pace *pace, size_t drained, uint64_t now_ns)
{
	pace->elapsed_ns = now_ns - pace->looked_ns;
	pace->looked_ns = now_ns;
	pace->drained = drained;
	pace->quiet_ticks = drained ? 0 : pace->quiet_ticks + 1;
}

uint64_t pace_timeout_ns(const struct pace *pace, uint64_t now_ns)
{
	uint64_t tick_ns = pace->quiet_ticks < IDLE_AFTER ? TICK_BUSY_NS : TICK_IDLE_NS;
	if (pace->drained * tick_ns <= pace->elapsed_ns * FLOOD)
		return tick_ns;
	uint64_t due_ns = pace->looked_ns + pace->elapsed_ns * FLOOD / pace->drained;
	return due_ns < now_ns + LEAST_NS ? 0 : due_ns - now_ns;
}

int pace_wait(int epoll_fd, struct epoll_event *events, int room, uint64_t timeout_ns)
{
	struct pollfd set = {.fd = epoll_fd, .events = POLLIN};
	const struct timespec timeout = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};
	if (timeout_ns % 1000000 == 0) /* the usual tick: one call */
		return epoll_wait(epoll_fd, events, room, (int)(timeout_ns / 1000000));
	if (ppoll(&set, 1, &timeout, NULL) < 0)
		return -1;
	return epoll_wait(epoll_fd, events, room, 0);
}
