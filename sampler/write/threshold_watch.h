/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thresholds of one process: reads the measures that they are about, and says when one is crossed.
 *
 *   inuse, alloc   the process' own counts in the shared memory, and its peak, which shows also a heap that
 *                  was larger between two looks: at each look, a few loads
 *   rss            VmRSS and VmHWM (the highest so far) of /proc/PID/status: 10 us. A program can hardly
 *                  touch more than 4 GiB a second, so it is read again after the time that would take it to
 *                  the next threshold: at each look when near, once a second when far
 *   memory.high    see sampler/linux/memory_high.h
 */
#ifndef SAMPLER_WRITE_THRESHOLD_WATCH_H
#define SAMPLER_WRITE_THRESHOLD_WATCH_H

#include "proto/region.h"
#include "sampler/linux/memory_high.h"
#include "sampler/write/threshold.h"

#include <stddef.h>
#include <sys/types.h>

struct threshold_watch;

struct threshold_settings {
	const struct threshold *rules; /* borrowed */
	size_t count;
	uint64_t limit_ns; /* between snapshots of one process for one rule; 0: none */
};

/* NULL if out of memory. */
struct threshold_watch *threshold_watch_new(const struct threshold_settings *settings);
void threshold_watch_free(struct threshold_watch *watch); /* NULL is fine */

struct threshold_subject {
	const struct region_place *place;
	pid_t pid;   /* 0: its /proc cannot be read */
	bool forked; /* it began with its parent's memory */
	bool before; /* it was there before the session */
	/* Its memory cgroup, for memory.high; "" if unknown. */
	const char *cgroup;
	int cgroup_version;
	struct memory_high **cgroups; /* all cgroups that are watched */
};

struct threshold_crossing {
	const char *name; /* of the first rule: "rss" */
	/* Of all rules: "rss 2.1 GiB >= 2.0 GiB; inuse 1.2 GiB +- 20.1 MiB, +300.0 MiB >= +256.0 MiB". */
	char cause[256];
};

/* True if a snapshot is due. now: reads everything, also resident memory that is not due. */
bool threshold_watch_look(struct threshold_watch *watch, const struct threshold_subject *subject,
    uint64_t now_ns, bool now, struct threshold_crossing *crossing);

/* How many crossings have no snapshot of their own, because of the limit, or wait for one. */
uint64_t threshold_watch_suppressed(const struct threshold_watch *watch);

bool threshold_watch_is_about(const struct threshold_watch *watch, enum threshold_measure measure);

/* The process' memory cgroup, if a rule is about it. NULL if there is none, or it is not known yet. */
struct memory_high *threshold_watch_cgroup(const struct threshold_watch *watch);

/* Says what memory.high means for a process. watch NULL: the process is in no memory cgroup. */
void threshold_describe_memory_high(const struct memory_high *watch, char *text, size_t text_bytes);

#endif
