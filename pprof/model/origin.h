/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a profile comes from: program, process, and why it was written. Our own profiles have that in their
 * comments (sampler/write/heap_snapshot.c and event_source.c); others have only the file name of the
 * first mapping.
 */
#ifndef PPROF_MODEL_ORIGIN_H
#define PPROF_MODEL_ORIGIN_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct profile;

enum origin_kind {
	ORIGIN_LIVE, /* what was in use when it was written */
	ORIGIN_PEAK,
	ORIGIN_DELTA, /* what was allocated in an interval */
};

/* What is not in a profile although it says that every allocation is. */
enum origin_gap {
	ORIGIN_GAP_ATTACHED = 1,   /* from before heaptap was attached */
	ORIGIN_GAP_TAKEN_OVER = 2, /* from before a daemon took the process over */
	ORIGIN_GAP_PAUSED = 4,
	ORIGIN_GAP_LIMITED = 8, /* from after the process had set itself a limit of memory */
};

/* Comments that tell so, or how they begin. */
#define ORIGIN_TAKEN_OVER "taken over: "
#define ORIGIN_PAUSED     "sampling was paused for "
#define ORIGIN_LIMITED    "not profiled since they set themselves a limit of memory: "

struct origin {
	char program[256]; /* "redis-server"; "" unknown */
	/* what it is called in tables, which tells it apart from others of its program: "python3.11 gunicorn
	 * app:app"; the program where no more is known, or it is a sum */
	char name[256];
	pid_t pid;         /* 0 unknown */
	char host[65];     /* "" unknown */
	char cause[512];   /* "exit: status 0"; "" unknown */
	char samples[512]; /* "8234 taken, 2 lost stacks"; "" unknown */
	char attached
	    [160]; /* "3.1 s after the start; ...": it was attached to; "" it was started by heaptap */
	char taken_over[64]; /* "3.1 s after the start": by a daemon; "" it was not */
	uint32_t gaps;       /* enum origin_gap, or'ed */
	/* what of the program's memory is not in the profile, and how to see it; of several the first, which
	 * matters most; "" nothing known */
	char unseen[256];
	int64_t rss_bytes;       /* resident memory of the process then; -1 unknown */
	int64_t anonymous_bytes; /* of it what is known not to be malloc's, by the samples; 0 unknown */
	char event[64];          /* "cpu-clock": not a heap profile but one of this event; "" */
	char merged
	    [512]; /* "3 processes: nginx (3)...": what `heaptap merge` added up; "" a profile as written */
	char session[64];   /* which run of `heaptap record`; "" unknown */
	int64_t session_ns; /* when it began, since 1970; 0 unknown */
	int64_t start_ns;   /* when the process began to execute the program, or was first seen; 0 unknown */
	size_t process_count;  /* that it is of: more than one if another tool added profiles up */
	bool ours, is_daemons; /* of heaptap; of its daemon, which alone gives labels */
	enum origin_kind kind;
	int64_t time_ns, duration_ns, period;  /* as in the profile */
	char period_type[32], period_unit[16]; /* "space" and "bytes", "cpu" and "nanoseconds" */
	char path[4096];                       /* of the program's file, "" unknown */
	char build_id[129];                    /* of that file, lowercase hex */
};

void origin_read(struct origin *origin, const struct profile *profile);

/* Begins the comment with the name of the process. */
#define ORIGIN_NAME "name: "

/* By this comment, which every profile of ours has, profiles of one process belong together. */
#define ORIGIN_IDENTITY_FORMAT "session=%" PRId64 "-%d start=%" PRId64

/* The label of a block that was there when its process was forked: the number of the process that took its
 * sample. The profile of that process and those of its other children have the sample, too. */
#define ORIGIN_LABEL_FROM "inherited_from"

/* The label of a merged profile that tells the process of a block, where several processes have blocks in
 * common. */
#define ORIGIN_LABEL_PID "pid"

/* In the comment about samples: blocks under [lost stack] that the process has not allocated itself, so that
 * its own lost stacks do not count them; and what a delta's numbers are of. */
#define ORIGIN_LOST_INHERITED "inherited without a stack"
#define ORIGIN_OF_INTERVAL    "of this interval"
#define ORIGIN_MERGED_SAMPLES "; samples: " /* in the comment of a merged profile, before their number */

/* Does it tell from which process it is? Not if it is of another tool, or the sum of several processes. */
bool origin_has_process(const struct origin *origin);

/* Are both from one process, while it executed one program? False if that is not known. */
bool origin_same_process(const struct origin *a, const struct origin *b);

/* Was it written when heaptap left a process that ran on? */
static inline bool origin_is_detach(const struct origin *origin)
{
	return strncmp(origin->cause, "detach", 6) == 0;
}

/* Is it the last state of its process that its session has? */
static inline bool origin_is_last(const struct origin *origin)
{
	return strncmp(origin->cause, "exit", 4) == 0 || origin_is_detach(origin);
}

#endif
