/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/poll_interval.h"

#include <poll.h>
#include <time.h>

#define MS_NS    UINT64_C(1000000)
#define SOON_NS  (200 * MS_NS)
#define LATER_NS (2000 * MS_NS)
#define SHORT_NS (2 * MS_NS)
#define LONG_NS  (10 * MS_NS)

enum {
	/* Samples of one look. 64 cost the same at -p 1, 1024 half as much again (the stacks leave the
	 * cache). */
	FLOOD = 256,
	MANY = FLOOD / 4,     /* a look aims at so many: their rate may grow four times until the next look */
	RISE = 8,             /* so many looks bring some_ns most of the way up */
	LEAST_NS = 30 * 1000, /* shorter sleeps are not worth their cost */
};

void poll_interval_begin(struct poll_interval *pace, uint64_t now_ns)
{
	*pace = (struct poll_interval){
	    .began_ns = now_ns, .came_ns = now_ns, .looked_ns = now_ns, .some_ns = LONG_NS};
}

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

void poll_interval_note(
    struct poll_interval *pace, const struct poll_interval_findings *found, uint64_t now_ns)
{
	pace->elapsed_ns = now_ns - pace->looked_ns;
	pace->looked_ns = now_ns;
	pace->drained = found->samples;
	if (found->processes)
		pace->began_ns = now_ns;
	if (found->processes || found->samples)
		pace->came_ns = now_ns;
	if (found->requests)
		pace->asked_ns = now_ns;
	uint64_t some_ns =
	    found->samples ? within(pace->elapsed_ns * MANY / found->samples, SHORT_NS, LONG_NS) : LONG_NS;
	if (some_ns < pace->some_ns)
		pace->some_ns = some_ns;
	else
		pace->some_ns += (some_ns - pace->some_ns) / RISE;
}

static uint64_t tick_ns(const struct poll_interval *pace, uint64_t now_ns)
{
	if (now_ns - pace->began_ns < SOON_NS)
		return SHORT_NS;
	if (now_ns - pace->came_ns < SOON_NS)
		return pace->some_ns - pace->some_ns % MS_NS; /* see poll_interval_wait */
	return now_ns - pace->came_ns < LATER_NS || now_ns - pace->asked_ns < LATER_NS ? 20 * MS_NS
	                                                                               : 40 * MS_NS;
}

uint64_t poll_interval_timeout_ns(const struct poll_interval *pace, uint64_t now_ns)
{
	uint64_t tick = tick_ns(pace, now_ns);

	if (pace->drained * tick <= pace->elapsed_ns * FLOOD)
		return tick;
	uint64_t due_ns = pace->looked_ns + pace->elapsed_ns * FLOOD / pace->drained;
	return due_ns < now_ns + LEAST_NS ? 0 : due_ns - now_ns;
}

int poll_interval_wait(int epoll_fd, struct epoll_event *events, int room, uint64_t timeout_ns)
{
	struct pollfd set = {.fd = epoll_fd, .events = POLLIN};
	const struct timespec timeout = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};

	if (timeout_ns % MS_NS == 0) /* the usual tick: one call */
		return epoll_wait(epoll_fd, events, room, (int)(timeout_ns / MS_NS));
	if (ppoll(&set, 1, &timeout, NULL) < 0)
		return -1;
	return epoll_wait(epoll_fd, events, room, 0);
}
