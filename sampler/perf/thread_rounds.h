/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts something on every thread of a running process that new threads inherit from their creators, such as a
 * perf event. A thread whose creator was not reached yet does not inherit it. So the list of threads is read
 * in rounds, until a round finds no new thread.
 */
#ifndef SAMPLER_PERF_THREAD_ROUNDS_H
#define SAMPLER_PERF_THREAD_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct thread_rounds {
	pid_t pid;
	int rounds_max;
	bool one_is_quiet; /* a first round with one thread is enough: later threads inherit from it */
	/* Called for a thread that was not reached yet. Returns 0; -ESRCH if the thread has ended; or another
	 * -errno, which ends thread_rounds_run. */
	int (*thread)(void *context, pid_t tid);
	void *context;
};

/* Returns the number of threads reached, or -errno (-ESRCH if the process does not exist). The caller closes
 * what was opened, also after an error. */
ssize_t thread_rounds_run(const struct thread_rounds *rounds);

#endif
