/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which profiles belong together, by their origins: sessions, their processes, and the files of each process.
 *
 * A process here is one pid while it executes one program. Its heap profiles are states of one heap (0001,
 * 0002, the peak, the exit), of which only one may count, and deltas, which are parts of a state. A profile
 * that is not of one process (of another tool, or merged) is a process of its own. Files that name no session
 * are one session together.
 */
#ifndef SAMPLER_CMD_REPORT_SESSIONS_H
#define SAMPLER_CMD_REPORT_SESSIONS_H

#include "pprof/model/origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SESSIONS_NONE = -1 };

struct sessions_process {
	size_t heap_first, heap_count; /* places in sessions.order: by time, the exit last */
	size_t event_first, event_count;
	int64_t start_ns; /* since 1970; without a start in its files: the time of the first */
	/* Numbers of files, or SESSIONS_NONE: the newest state (a peak only if there is no other), and the
	 * peak. Heap profiles if there are any, otherwise those of events. */
	long newest, peak;
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

/* Pure. 0 or -ENOMEM; the caller ends it with sessions_fini() in both cases. The origins must outlive it. */
int sessions_make(struct sessions *sessions, const struct origin *const *origins, size_t count);
void sessions_fini(struct sessions *sessions);

/* How many files a process has, and the number of the i-th: heap profiles first. */
size_t sessions_files(const struct sessions_process *process);
size_t sessions_file(const struct sessions *sessions, const struct sessions_process *process, size_t i);

/* False for a profile that is not of one process. */
bool sessions_is_peak(const struct sessions *sessions, size_t file);
bool sessions_is_delta(const struct sessions *sessions, size_t file);

#endif
