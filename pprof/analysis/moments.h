/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moments at which the states of several processes are added up, as one series:
 *
 *     process    state     state       state      end
 *     process         state     state       state       state
 *     process                             (start) state     state
 *     moments         1         2           3           4
 *
 * A moment is when each process that runs has a new state. A process that began between two moments had
 * nothing before. One that has ended holds nothing any more; what it has allocated stays counted. Pure.
 */
#ifndef PPROF_ANALYSIS_MOMENTS_H
#define PPROF_ANALYSIS_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOMENTS_MOST = 48 };

struct moments_process {
	int64_t start_ns;        /* since 1970; 0: before all states */
	const int64_t *times_ns; /* of its states while it ran, in their order */
	size_t count;            /* 0: the process counts for nothing */
	int64_t end_ns;          /* 0: the process runs, or its end was not seen */
	bool runs;               /* its last state is what it has now */
};

struct moments_state {
	bool begun; /* if not, `index` has no meaning */
	bool over;  /* the process has ended: only what it allocated counts */
	size_t index;
};

/* How many of `count` states show a process that ran on, if it ended at end_ns. The last state does not if it
 * came just before the end: the process was perhaps freeing all that it had. */
size_t moments_running(const int64_t *times_ns, size_t count, int64_t end_ns);

/* The times of at most `most` moments, evenly chosen among more. Returns how many, or -ENOMEM. */
int moments_choose(
    int64_t *moments_ns, size_t most, const struct moments_process *processes, size_t process_count);

struct moments_state moments_state_at(const struct moments_process *process, int64_t moment_ns);

#endif
