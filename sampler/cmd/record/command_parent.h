/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COMMAND's parent: a process of ours between the front and COMMAND, which ends when the front's own parent
 * ends.
 *
 * A script that starts `heaptap record ./server & echo $! >pid` and ends has written down the front's pid. So
 * the front must live as long as COMMAND. But COMMAND may want to know when the script ends, by a signal
 * (PR_SET_PDEATHSIG) or by getppid(): the kernel answers that for COMMAND's parent. So the parent has to end
 * at a time when the front must not, and the two are different processes. The parent also tells the front
 * what state COMMAND is in, and passes on the snapshot signal, which COMMAND may send to its parent.
 *
 * While the parent ends, the front is a subreaper (prctl(2)). So COMMAND becomes a child of the front, and
 * its exit status is not lost. A process that COMMAND orphans in that moment becomes a child of the front
 * too, which reaps it.
 */
#ifndef SAMPLER_CMD_RECORD_COMMAND_PARENT_H
#define SAMPLER_CMD_RECORD_COMMAND_PARENT_H

#include <stdbool.h>
#include <sys/types.h>

struct command_parent {
	pid_t pid; /* -1: it has been reaped, or never existed */
	int fd;    /* to read its messages from; -1: all were read */
};

/*
 * Forks the parent, which forks COMMAND. Returns COMMAND's pid or -errno, and 0 in COMMAND, as fork(2) does.
 * Call it with all signals blocked. signal_fd: a non-blocking signalfd of all signals. snapshot_signal: 0 for
 * none. When the front ends in any way, the parent ends too.
 */
pid_t command_parent_fork(struct command_parent *parent, int signal_fd, int snapshot_signal);

enum { COMMAND_PARENT_ANSWER = -1 }; /* no status that wait(2) gives */

/* Reads the next change of COMMAND's state, as wait(2) gives it, or COMMAND_PARENT_ANSWER. False if there is
 * none now. The kernel gives COMMAND's pid to no other process before command_parent_end(). */
bool command_parent_read(struct command_parent *parent, int *status);

/* Asks the parent to look at COMMAND. The parent answers with COMMAND_PARENT_ANSWER behind all changes that
 * it has seen. False if there will be no answer. */
bool command_parent_ask(const struct command_parent *parent);

/* Tells the parent to end. Its messages can still be read. SIGCHLD comes when it has ended. */
void command_parent_end(const struct command_parent *parent);

#endif
