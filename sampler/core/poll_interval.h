/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the main loop sleeps when no event wakes it.
 *
 * Most of what a target writes into shared memory does not wake the sampler, since that would take a system
 * call in the target. A look costs 12 to 80 us, most of it for sleeping and waking in the kernel: so 500
 * looks a second take 1 to 4 % of a CPU, and 50 take a tenth of that. A late look has a price: the buffers
 * for stacks may be full (full rings wake us, full buffers do not), a process that has just started may have
 * ended, and a signal that requests a snapshot waits.
 *
 *   < 2 ms      samples come so fast that in a longer sleep a class of stack buffers could overflow
 *   2 ms        a program was started in the last 200 ms
 *   2 to 10 ms  samples came in the last 200 ms: about the time in which 64 samples come
 *   20 ms       samples, or a request for a snapshot, came in the last two seconds
 *   40 ms       otherwise
 */
#ifndef SAMPLER_CORE_POLL_INTERVAL_H
#define SAMPLER_CORE_POLL_INTERVAL_H

#include <stdint.h>
#include <sys/epoll.h>

/* Times in CLOCK_MONOTONIC. */
struct poll_interval {
	uint64_t began_ns;              /* when a look last found a new process */
	uint64_t came_ns;               /* when samples were last found */
	uint64_t asked_ns;              /* when a snapshot was last requested */
	uint64_t looked_ns, elapsed_ns; /* time of the last look, and time between the last two */
	uint64_t drained;               /* samples at the last look */
	uint64_t some_ns;               /* the time in which 64 samples come; falls at once, rises slowly */
};

/* What a look has found. */
struct poll_interval_findings {
	uint64_t processes; /* new */
	uint64_t samples;   /* and frees of sampled blocks */
	uint64_t requests;
};

/* As if a process had started at now_ns. */
void poll_interval_begin(struct poll_interval *pace, uint64_t now_ns);

/* Notes what the look at now_ns has found. */
void poll_interval_note(
    struct poll_interval *pace, const struct poll_interval_findings *found, uint64_t now_ns);

/* How long to sleep at most, from now_ns on; 0: look at once. */
uint64_t poll_interval_timeout_ns(const struct poll_interval *pace, uint64_t now_ns);

/* epoll_wait with a timeout in nanoseconds. */
int poll_interval_wait(int epoll_fd, struct epoll_event *events, int room, uint64_t timeout_ns);

#endif
