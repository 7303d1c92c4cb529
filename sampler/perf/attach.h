/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts something on every thread of a running process that threads inherit from their creators, as perf
 * events are. A thread created by one that has it has it too; one created by a thread not yet reached has
 * not. So go round the list of threads until a round finds nobody new.
 */
#ifndef SAMPLER_PERF_ATTACH_H
#define SAMPLER_PERF_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct attach {
	pid_t pid;
	int rounds_max;
	int quiet_rounds;  /* without anybody new, until it is over */
	bool one_is_quiet; /* a first round that finds a single thread is: who comes later is its own */
	/* For a thread not yet reached. 0: it has it now; ATTACH_SKIP: it need not be asked again in this
	 * round; -ESRCH: it has ended; another -errno ends it all. */
	int (*thread)(void *context, pid_t tid);
	/* After each round; NULL: nothing. 0 or -errno, which ends it all. */
	int (*round_done)(void *context);
	void *context;
};

enum { ATTACH_SKIP = 1 };

/* The number of threads reached, or -errno: -ESRCH if the process is not there. What was opened is the
 * caller's to close, also on error. */
ssize_t attach_threads(const struct attach *attach);

#endif
