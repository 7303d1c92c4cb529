/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which profiles belong together, by their origins: sessions, their processes, and the files of each process.
 *
 * A process here is one pid while it executes one program. Its heap profiles are states of one heap (0001,
 * 0002, the exit), of which only one may count, peaks, and deltas, which are parts of a state. Profiles of
 * events belong to the process of that pid and program whose heap began nearest to them. A profile that is
 * not of one process (of another tool, or merged) is a process of its own. Files that name no session are one
 * session together, the oldest.
 */
#ifndef SAMPLER_CMD_REPORT_SESSIONS_H
#define SAMPLER_CMD_REPORT_SESSIONS_H

#include "pprof/model/origin.h"

#include <stddef.h>
#include <stdint.h>

enum { SESSIONS_NONE = -1 };

struct sessions_process {
	size_t first, count; /* its files, as places in sessions.order */
	size_t state_count;  /* the first of them: states, by time, the exit last */
	size_t delta_first;  /* behind states and peaks */
	int64_t start_ns;    /* since 1970; without a start in its files: the time of the first */
	long newest, peak;   /* numbers of files, or SESSIONS_NONE: the newest state, else the peak */
};

struct sessions_item {
	size_t first, count; /* its processes, by start */
};

struct sessions {
	const struct origin *const *origins; /* borrowed */
	size_t *order;                       /* numbers of files */
	int64_t *times_ns;                   /* of the files, in their order */
	int64_t *starts_ns;                  /* by the number of a file: when its process began */
	struct sessions_process *processes;
	struct sessions_item *sessions; /* the newest first */
	size_t file_count, process_count, session_count;
};

/* What a profile is of: "" the heap, else an event. Of another tool: what its period counts. */
const char *sessions_kind(const struct origin *origin);

/* Pure. kind: only files of that kind count; NULL: all. 0 or -ENOMEM; the caller ends it with sessions_fini()
 * in both cases. The origins must outlive it. */
int sessions_make(
    struct sessions *sessions, const struct origin *const *origins, size_t count, const char *kind);
void sessions_fini(struct sessions *sessions);

#endif
