/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds processes that may offer a region.
 *
 *   notices   fanotify on the library's file gives the pid of each process that opens it, also in other mount
 *             and pid namespaces. Needs CAP_SYS_ADMIN, and does not see copies of the file.
 *   sweep     of /proc, every sweep_ns: finds every process, a little later
 *
 * A process that is just loading the library offers nothing yet. So after a notice the finder looks at the
 * process again and again, at growing distances.
 *
 * A process can make a look at it expensive. So each call does only a part of the work, and the processes of
 * one account get only a share of the CPU time.
 */
#ifndef SAMPLER_CMD_DAEMON_FINDER_H
#define SAMPLER_CMD_DAEMON_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct finder;

struct finder_setup {
	const char *library; /* the file to watch; NULL: none */
	int epoll_fd;        /* finder_fd() is put into this set; not used without a library */
	uint64_t sweep_ns;   /* between sweeps */
	/* A call of finder_run() looks at young processes for so long, and sweeps for as long. The next call
	 * goes on. Each call makes at least one look of each kind. */
	uint64_t budget_ns;
	uint64_t burst_ns; /* CPU time of looks at one account's processes */
	/* Looks at a process. noticed: a notice says that it has just opened the library. False: look again
	 * later. */
	bool (*look)(void *context, pid_t pid, bool noticed);
	void (*opened)(void *context, pid_t pid); /* a notice says that the process has opened the library */
	void (*swept)(void *context);             /* a sweep has met every process that there is */
	/* The account of a process, as a number. Called after long looks, and while an account has spent its
	 * share of CPU time. */
	uint64_t (*account)(void *context, pid_t pid);
	/* A sweep has met a process and did not look at it, since its account has spent its share. */
	void (*passed)(void *context, pid_t pid);
	void *context;
};

/* NULL if there is no memory. */
struct finder *finder_new(const struct finder_setup *setup);
void finder_free(struct finder *finder); /* NULL is fine */

/* The descriptor that wakes the epoll set when there are notices. -1 if there are no notices;
 * finder_error() says why (-errno). */
int finder_fd(const struct finder *finder);
int finder_error(const struct finder *finder);

/* Reads notices (two milliseconds after the last ones at the earliest), looks at young processes, and
 * begins a sweep or goes on with it. Returns the time until the next call, in nanoseconds, at most. */
uint64_t finder_run(struct finder *finder, uint64_t now_ns);

/* Only reads notices. False if the finder gets no notices: then nothing follows from their absence. */
bool finder_read(struct finder *finder, uint64_t now_ns);

/* Makes the next finder_run() begin a sweep. */
void finder_hurry(struct finder *finder);

#endif
