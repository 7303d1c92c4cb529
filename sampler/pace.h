/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pace of the main loop: when to look for stacks again. A copied one wakes nobody, so the next look comes before so many
 * are there as the buffers of a class hold, at the rate at which they came before the last look; else by the tick.
 */
#ifndef SAMPLER_PACE_H
#define SAMPLER_PACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct pace {
	uint64_t looked_ns, elapsed_ns; /* the last look, and from the one before to it */
	size_t drained;                 /* stacks at the last look */
	int quiet_ticks;                /* looks without any */
};

/* A look at now_ns has found `drained` stacks. */
void pace_look(struct pace *pace, size_t drained, uint64_t now_ns);

/* How long to sleep from now_ns on; 0: look at once. */
uint64_t pace_timeout_ns(const struct pace *pace, uint64_t now_ns);

/* epoll_wait with a timeout in nanoseconds. */
int pace_wait(int epoll_fd, struct epoll_event *events, int room, uint64_t timeout_ns);

#endif
