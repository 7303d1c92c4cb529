/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness tells whether a signal was sent to the front alone or to the whole group or unit.
 *
 * The front passes its signals on to COMMAND. But what kill(2) sends to the process group, or a service
 * manager to each process of the unit, COMMAND has already received, and a second SIGINT makes a server exit
 * without saving. The front cannot tell the two cases apart by itself. So there is a witness: a process of
 * ours in the same group and unit that no user has a reason to signal. A signal that it received too was sent
 * to the group or unit.
 *
 * That holds for SIGKILL too. The front stands for COMMAND, so the witness kills COMMAND when the front has
 * ended before it. If the witness was killed as well, the signal was for the group or unit, and has reached
 * those who are in it. COMMAND's pidfd keeps the witness from killing another process.
 *
 * PR_SET_PDEATHSIG in COMMAND would do the same with less, but COMMAND can see it and set its own, loses it
 * when it gains privileges, and would be killed when its parent ends on purpose (command_parent.h). The
 * sampler could do it, but may be stopped or busy for a second, and does not know whom the signal was for.
 */
#ifndef SAMPLER_SESSION_SIGNAL_WITNESS_H
#define SAMPLER_SESSION_SIGNAL_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct signal_witness {
	pid_t pid;     /* -1: there is none, or it does not answer */
	int fd;        /* to the witness, which takes its end for the front's; never closed by us */
	uint64_t seen; /* bit n - 1: it received signal n, and signal_witness_saw has not reported it yet */
};

/* Forks the witness, which ends with the front: then it kills COMMAND, unless command_fd, as of
 * pidfd_open_process(), says that COMMAND has ended. Call it with all signals blocked. If the fork fails,
 * signal_witness_saw always returns false, and nobody kills COMMAND. */
void signal_witness_start(struct signal_witness *witness, pid_t command, int command_fd);

/* True if the witness has received that signal too since the last call. Waits a moment for a sender that
 * signals a list of processes one after the other. */
bool signal_witness_saw(struct signal_witness *witness, int number);

#endif
