/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches to every thread of a running process something that new threads inherit from their creators, such
 * as a perf event. A thread created by a thread that was not reached yet does not inherit it, so the list of
 * threads is read in rounds until a round finds no new thread.
 */
#ifndef SAMPLER_PERF_THREAD_ROUNDS_H
#define SAMPLER_PERF_THREAD_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct thread_rounds {
	pid_t pid;
	int rounds_max;
	bool one_is_quiet; /* a first round with one thread ends it: later ones inherit from it */
	/* For a thread not yet reached. 0: attached; -ESRCH: it has ended; another -errno ends
	 * thread_rounds_run. */
	int (*thread)(void *context, pid_t tid);
	void *context;
};

/* The number of threads reached, or -errno: -ESRCH if the process does not exist. The caller closes what was
 * opened, also after an error. */
ssize_t thread_rounds_run(const struct thread_rounds *rounds);

#endif
