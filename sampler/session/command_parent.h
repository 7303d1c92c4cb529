/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent: the process whose child COMMAND is, and which ends when the front's own parent has ended.
 *
 * Whoever starts a program knows its pid. That is the front's pid, and it has to stand for COMMAND as long
 * as COMMAND lives, also after the end of its starter (`heaptap record ./server & echo $! >pid` in a script
 * that ends). COMMAND for its part may ask when its starter ends: by a signal (PR_SET_PDEATHSIG), or by
 * getppid(). The kernel's answer is about COMMAND's parent. So the parent has to end when the front must
 * not, and is a process of its own. It tells the front what state COMMAND is in, and passes on the snapshot
 * signal, which COMMAND may send to its parent.
 *
 * While the parent ends the front is a subreaper (prctl(2)): so COMMAND becomes the front's child, and its
 * exit status is not lost. An orphan that COMMAND leaves in that moment becomes the front's child too,
 * which reaps it.
 */
#ifndef SAMPLER_SESSION_COMMAND_PARENT_H
#define SAMPLER_SESSION_COMMAND_PARENT_H

#include <stdbool.h>
#include <sys/types.h>

struct command_parent {
	pid_t pid; /* -1: it has been reaped, or never was */
	int fd;    /* from it; -1: it has said all */
};

/*
 * Forks the parent, and COMMAND in it. Returns COMMAND's pid, or -errno; in COMMAND 0, as fork(2). Call it
 * with all signals blocked; signal_fd is a signalfd of them that does not block; snapshot_signal may be 0.
 * When the front ends, however it does, the parent ends too.
 */
pid_t command_parent_fork(struct command_parent *parent, int signal_fd, int snapshot_signal);

/* The next change of COMMAND's state, as wait(2) gives it, in order; false: no more now. COMMAND's number is
 * not given to another process before command_parent_end(). */
bool command_parent_read(struct command_parent *parent, int *status);

/* Tells it to end; what it has said before can still be read. SIGCHLD says that it did. */
void command_parent_end(const struct command_parent *parent);

#endif
