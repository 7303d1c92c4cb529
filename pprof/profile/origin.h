/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a profile comes from: program, process, and why it was written. Our own profiles have that in their
 * comments (sampler/snapshot/heap_snapshot.c and event_snapshot.c); others have only the file name of the
 * first mapping.
 */
#ifndef PPROF_PROFILE_ORIGIN_H
#define PPROF_PROFILE_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct profile;

enum origin_kind {
	ORIGIN_LIVE, /* what was in use when it was written */
	ORIGIN_PEAK,
	ORIGIN_DELTA, /* what was allocated in an interval */
};

struct origin {
	char program[256]; /* "redis-server"; "" unknown */
	pid_t pid;         /* 0 unknown */
	char host[65];     /* "" unknown */
	char cause[512];   /* "exit: status 0"; "" unknown */
	char samples[512]; /* "8234 taken, 2 lost stacks"; "" unknown */
	char unseen[256];  /* what of the program's heap is not in the profile; "" nothing known */
	bool ours;
	enum origin_kind kind;
	int64_t time_ns, duration_ns, period;  /* as in the profile */
	char period_type[32], period_unit[16]; /* "space" and "bytes", "cpu" and "nanoseconds" */
	char path[4096];                       /* of the program's file, "" unknown */
	char build_id[129];                    /* of that file, lowercase hex */
};

void origin_read(struct origin *origin, const struct profile *profile);

/* Are both from one process? False if that is not known. */
bool origin_same_process(const struct origin *a, const struct origin *b);

#endif
