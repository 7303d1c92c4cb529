/* SPDX-License-Identifier: Apache-2.0 */
/* What a scheduler is told when it is made. */
#ifndef SAMPLER_WRITE_SCHEDULER_SETUP_H
#define SAMPLER_WRITE_SCHEDULER_SETUP_H

#include "sampler/symbol/answer.h"
#include "sampler/write/output.h"
#include "sampler/write/threshold_watch.h"
#include "sampler/write/writer.h"

#include <stdbool.h>
#include <stdint.h>

struct sink;
struct target;

/* When and in how much detail snapshots are written. The session fills these in from the options. */
struct snapshot_settings {
	uint64_t interval_ns;      /* between periodic snapshots: see interval.h */
	uint64_t keep;             /* numbered snapshots of a process, the newest; 0: all */
	enum symbol_detail detail; /* of symbols */
	/* Processes with fewer samples leave no profile. COMMAND always does, and so does a process that
	 * resident_watch_is_large(). */
	uint64_t min_samples;
	int verbosity;           /* -1, 0, 1... as options have it */
	bool debuginfod;         /* missing debug files may be fetched */
	bool delta;              /* write a delta beside each periodic snapshot */
	const struct sink *sink; /* borrowed: where profiles go */
	struct threshold_settings thresholds;
};

/* Gives a snapshot in shared memory to the client that waits for it. */
struct in_memory_giver {
	void (*give)(void *context, uint64_t asker, pid_t pid, int fd); /* fd: the callee's, or -errno */
	void *context;
};

struct scheduler_setup {
	const struct snapshot_settings *settings; /* borrowed, as output is */
	struct output *output;
	/* Makes the path of a target's file, in place of `output`; NULL: `output` does. Returns 0 or
	 * -errno. */
	int (*reserve)(
	    void *context, const struct target *target, const char *name, char *path, size_t path_bytes);
	/* May the last profile of a target wait to be written, with all the memory that it holds until then?
	 * If not, it is dropped, which source->kind->dropped counts. NULL: it always may. */
	bool (*may_wait)(void *context, const struct target *target);
	struct writer_pace pace;
	/* Between looks at the threads and cgroups of all targets, for each of them; 1 s at least. */
	uint64_t refresh_share_ns;
	/* The session, if it is older than this process; began_unix_ns is 0 if it is not. */
	int64_t began_unix_ns;
	uint64_t began_ns; /* the same moment on the monotonic clock */
	pid_t began_pid;
	/* A snapshot that `asker` waits for is complete, or cannot be made (-errno). */
	void (*answer)(void *context, uint64_t asker, pid_t pid, const char *path, int error);
	void *context;
	struct in_memory_giver memory; /* the same for snapshots in shared memory */
};

#endif
