/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context switches of a process. A breakpoint is in the debug registers, which the kernel loads and unloads whenever one
 * of the process' threads comes and goes: a program that switches a lot pays for it however few samples it takes.
 */
#ifndef SAMPLER_SWITCHES_H
#define SAMPLER_SWITCHES_H

#include <stdint.h>
#include <sys/types.h>

enum {
	SWITCHES_THREADS_MAX = 512, /* threads looked at; of more, the sum is scaled up */

	/* Above this the breakpoint backend yields. Ping-pong through a pipe, both ends profiled, native 4.6 us a round
	 * (4 switches): see bench/RESULTS.md for the cost by backend; at 1 us a switch this bound is 2 % of a CPU. */
	SWITCHES_PER_SECOND_MAX = 20000,
};

/* Turns on a CPU so far, all threads together. Returns 0 or -errno. */
int switches_read(pid_t pid, uint64_t *turns);

#endif
