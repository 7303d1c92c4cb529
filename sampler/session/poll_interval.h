/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pace of the main loop: how long the sampler sleeps when nothing wakes it.
 *
 * Most of what a target leaves in shared memory wakes nobody: that would take a system call there. A look
 * costs 12 to 20 us, most of it the kernel's for sleeping and waking, so 500 a second are a percent of a CPU,
 * and 50 a tenth of one. What a look may be late for: room for stacks (the rings wake us, buffers do not),
 * the /proc of a process that has just begun and may end soon, and a signal that asks for a snapshot.
 *
 *   < 2 ms  at the current rate a class of stack buffers would overflow sooner
 *   2 ms    a program has come, or a look has found many samples, in the last 200 ms
 *   10 ms   there were samples in the last 200 ms
 *   20 ms   or in the last two seconds, or somebody asked for a snapshot
 *   40 ms   nothing of the kind
 */
#ifndef SAMPLER_SESSION_POLL_INTERVAL_H
#define SAMPLER_SESSION_POLL_INTERVAL_H

#include <stdint.h>
#include <sys/epoll.h>

/* Times in CLOCK_MONOTONIC. */
struct poll_interval {
	uint64_t crowd_ns;              /* when there was last much to do */
	uint64_t came_ns;               /* when samples last came */
	uint64_t asked_ns;              /* when a snapshot was last asked for */
	uint64_t looked_ns, elapsed_ns; /* the last look, and from the one before to it */
	uint64_t drained;               /* samples at the last look */
};

/* What a look has found. */
struct poll_interval_findings {
	uint64_t processes; /* new */
	uint64_t samples;   /* and frees of sampled blocks */
	uint64_t requests;
};

/* As if a process had come at now_ns. */
void poll_interval_begin(struct poll_interval *pace, uint64_t now_ns);

/* A look at now_ns has found this. */
void poll_interval_note(
    struct poll_interval *pace, const struct poll_interval_findings *found, uint64_t now_ns);

/* How long to sleep at most, from now_ns on; 0: look at once. */
uint64_t poll_interval_timeout_ns(const struct poll_interval *pace, uint64_t now_ns);

/* epoll_wait with a timeout in nanoseconds. */
int poll_interval_wait(int epoll_fd, struct epoll_event *events, int room, uint64_t timeout_ns);

#endif
