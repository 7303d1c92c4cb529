/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program keeps when it executes another, and a child does not get: execve(2) against fork(2). Whoever
 * executes `heaptap record COMMAND` means it for COMMAND. But COMMAND is not our process, as it would be
 * without us, but a descendant. So these are handed over:
 *
 *   signal mask, action of SIGCHLD         we change both
 *   PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
 *   timers of setitimer(2), alarm(2)
 *   scheduling, if SCHED_RESET_ON_FORK is set
 *   record locks (fcntl(2), F_SETLK)       a lock that cannot be handed over is named in a line
 *   variables that hold our pid            LISTEN_PID, WATCHDOG_PID, SYSTEMD_EXEC_PID, MAINPID
 *
 * Pending signals need nothing: the front reads them, and passes them on. These cannot be handed over:
 *
 *   children of the process                COMMAND cannot wait for them (a line with -v)
 *   that it leads a session, or a group    setsid(2) in COMMAND succeeds
 *   CPU time that was used                 COMMAND has all of RLIMIT_CPU
 *   undo values of semop(2)                they are undone when the front ends
 *   F_NOTIFY, PR_SET_PTRACER
 *
 * Other attributes are the same after fork(2), or are gone after execve(2). The namespace of pids for
 * children is the exception: see inheritance_obstacle().
 */
#ifndef SAMPLER_CMD_RECORD_INHERITANCE_H
#define SAMPLER_CMD_RECORD_INHERITANCE_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

enum { INHERITANCE_LOCKS_MAX = 64, INHERITANCE_TIMERS = 3 };

/* As in sched_setattr(2). */
struct inheritance_scheduling {
	uint32_t bytes, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

struct inheritance {
	pid_t front;                   /* 0 until inheritance_take() */
	sigset_t mask;                 /* filled in by the front */
	struct sigaction child_action; /* of SIGCHLD; filled in by the front */
	int end_signal;                /* PR_SET_PDEATHSIG */
	int subreaper;                 /* PR_SET_CHILD_SUBREAPER */
	struct itimerval timers[INHERITANCE_TIMERS];
	struct inheritance_scheduling scheduling; /* bytes 0: a child gets the same */
	struct inheritance_lock {
		int fd;
		struct flock range;
	} locks[INHERITANCE_LOCKS_MAX];
	size_t lock_count;
};

/* Why COMMAND must be executed in place of this process, unprofiled; NULL if it can be a child. */
const char *inheritance_obstacle(void);

/* Has this process children that it had before it executed heaptap? Call it before the first fork. */
bool inheritance_has_children(void);

/* In the front, before it forks COMMAND. Locks for writing become locks for reading, which two processes can
 * have at a time: so nobody else gets such a lock while it is handed over. */
void inheritance_take(struct inheritance *inheritance);

/* In COMMAND's process. */
void inheritance_receive(const struct inheritance *inheritance, const char *command);

/* In the front, after inheritance_receive(): gives up what COMMAND's process has now. */
void inheritance_release(const struct inheritance *inheritance);

/* In the process that executes COMMAND next, after inheritance_release(), or instead of it in the front.
 * A line tells of each lock that another process has taken. */
void inheritance_complete(const struct inheritance *inheritance, const char *command);

/* In COMMAND's process: its pid replaces the front's in the environment. */
void inheritance_environment(const struct inheritance *inheritance);

#endif
