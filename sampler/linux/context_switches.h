/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context switches of a process. A breakpoint uses the debug registers, which the kernel reloads at every
 * context switch of the process' threads. So a program that switches often pays for them, however few samples
 * are taken.
 */
#ifndef SAMPLER_LINUX_CONTEXT_SWITCHES_H
#define SAMPLER_LINUX_CONTEXT_SWITCHES_H

#include <stdint.h>
#include <sys/types.h>

enum {
	/* threads that are read; the sum is scaled up if there are more */
	CONTEXT_SWITCHES_THREADS_MAX = 512,

	/* Above this the breakpoint backend yields: a task with a perf event of its own takes 1.0 to 1.3 us
	 * more each time it leaves and returns to a CPU (pipe ping-pong, 5104 against 6405 ns a round), so
	 * this bound is 1 % of a CPU. */
	CONTEXT_SWITCHES_PER_SECOND_MAX = 10000,
};

/* How often all threads together have been scheduled on a CPU so far. Returns 0 or -errno. */
int context_switches_read(pid_t pid, uint64_t *turns);

#endif
