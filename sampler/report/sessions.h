/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which profiles belong together, judged by their origins alone: sessions, their processes, and the states
 * of each process.
 *
 * A process here is one pid while it executes one program. Its profiles are states of one heap (0001, 0002,
 * the peak, the exit), of which only one may count, and deltas, which are parts of a state. Profiles of
 * older versions name no session: they are one session together, and a process among them is told by host,
 * pid, program, build id, and by time: after an exit begins another one. A profile that is not of one
 * process (of another tool, or merged) is a process of its own.
 */
#ifndef SAMPLER_REPORT_SESSIONS_H
#define SAMPLER_REPORT_SESSIONS_H

#include "pprof/profile/origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SESSIONS_NONE = -1 };

struct sessions_process {
	/* Its files, in sessions.order: of the heap first, then of events; states by time, the exit last. */
	size_t first, count;
	size_t heap_count; /* so many of them are heap profiles */
	size_t session;    /* its number, from 0 */
	int64_t start_ns;  /* since 1970; without one in its files: the time of the first */
};

struct sessions_item {
	size_t first, count; /* its processes, by start */
	int64_t start_ns;    /* since 1970; of files without a session: the time of the newest */
	bool known;          /* its files name it */
};

struct sessions {
	const struct origin *const *origins; /* borrowed */
	size_t *order;                       /* numbers of files */
	struct sessions_process *processes;
	struct sessions_item *sessions; /* the newest first */
	size_t file_count, process_count, session_count;
};

/* Pure. 0 or -ENOMEM; call sessions_fini() in both cases. The origins must outlive it. */
int sessions_make(struct sessions *sessions, const struct origin *const *origins, size_t count);
void sessions_fini(struct sessions *sessions);

/* The number of a process' file, or SESSIONS_NONE: the newest state (a peak only if there is no other), and
 * the peak. Heap profiles if it has any, otherwise those of events. */
long sessions_newest(const struct sessions *sessions, size_t process);
long sessions_peak(const struct sessions *sessions, size_t process);

/* What is not of one process is neither. */
bool sessions_is_peak(const struct sessions *sessions, size_t file);
bool sessions_is_delta(const struct sessions *sessions, size_t file);

#endif
