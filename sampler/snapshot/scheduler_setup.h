/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scheduler is told when it is made.
 */
#ifndef SAMPLER_SNAPSHOT_SCHEDULER_SETUP_H
#define SAMPLER_SNAPSHOT_SCHEDULER_SETUP_H

#include "sampler/snapshot/in_memory.h"
#include "sampler/snapshot/output.h"
#include "sampler/snapshot/snapshot_settings.h"
#include "sampler/snapshot/writer.h"

struct scheduler_setup {
	const struct snapshot_settings *settings; /* borrowed, as output is */
	struct output *output;
	/* The path of a target's file, in place of `output`; NULL: none. Returns 0 or -errno. */
	int (*claim)(
	    void *context, const struct target *target, const char *name, char *path, size_t path_bytes);
	/* Whether the profile of a target that has ended may wait to be written, with all that it holds until
	 * then; NULL: always. False: it is dropped, which source->kind->dropped counts. */
	bool (*may_wait)(void *context, const struct target *target);
	struct writer_pace pace;
	/* Between looks at the threads and cgroups of all targets, for each of them; 0: 1 s in any case. */
	uint64_t refresh_share_ns;
	/* Which session it is, if it is older than this process: began_unix_ns 0: it is not. */
	int64_t began_unix_ns;
	uint64_t began_ns; /* the same moment on the monotonic clock */
	pid_t began_pid;
	/* A snapshot that `asker` waits for is complete, or cannot be made (-errno). */
	void (*answer)(void *context, uint64_t asker, pid_t pid, const char *path, int error);
	void *context;
	struct in_memory_giver memory; /* the same of one as shared memory */
};

#endif
