/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds processes that may offer a region.
 *
 *   notices   fanotify on the library's file: the pid of whoever opens it, also in other mount and pid
 *             namespaces. Needs CAP_SYS_ADMIN, and does not see copies of the file.
 *   sweep     of /proc, every SWEEP_NS: finds everything, a little later
 *
 * A process that is just loading the library offers nothing yet: after a notice it is looked at again and
 * again, at growing distances.
 *
 * What a look costs is up to the process. So neither is more than a part of the work done at a time, nor can
 * one account's processes have more than a share of the CPU time.
 */
#ifndef SAMPLER_DAEMON_FINDER_H
#define SAMPLER_DAEMON_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct finder;

struct finder_setup {
	const char *library; /* the file to watch; NULL: none */
	int epoll_fd;        /* that of finder_fd() is put into; used with a library only */
	uint64_t sweep_ns;   /* between sweeps */
	/* So long a call of finder_tend looks at young processes, and as long it sweeps; the next goes on.
	 * At least one look of each is made. */
	uint64_t budget_ns;
	uint64_t burst_ns; /* CPU time of looks at one account's processes */
	/* Looks at a process. noticed: it has opened the library just now. False: look again. */
	bool (*look)(void *context, pid_t pid, bool noticed);
	void (*opened)(void *context, pid_t pid); /* it has opened the library, by a notice */
	void (*swept)(void *context);             /* a sweep has seen every process that there is */
	/* Whose a process is; asked after looks that took long, and while somebody's share is spent. */
	uint64_t (*account)(void *context, pid_t pid);
	/* A sweep has met a process, and there is no look at it for want of a share. */
	void (*passed)(void *context, pid_t pid);
	void *context;
};

/* NULL: out of memory. */
struct finder *finder_new(const struct finder_setup *setup);
void finder_free(struct finder *finder); /* NULL is fine */

/* Wakes the epoll set when there are notices; -1: there are none, because: finder_error (-errno). */
int finder_fd(const struct finder *finder);
int finder_error(const struct finder *finder);

/* Reads notices (again two milliseconds after there were some, at the earliest), looks at young processes,
 * sweeps if it is time, or goes on sweeping. Returns the time until it must be called again, in
 * nanoseconds. */
uint64_t finder_tend(struct finder *finder, uint64_t now_ns);

/* Reads notices alone. False: there are none, so that nothing follows from their absence. */
bool finder_read(struct finder *finder, uint64_t now_ns);

/* The next finder_tend sweeps. */
void finder_hurry(struct finder *finder);

/* A process has ended, or is not to be looked at again. */
void finder_drop(struct finder *finder, pid_t pid);

#endif
