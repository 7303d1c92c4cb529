/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness tells whether a signal was sent to the front alone or to the whole group or unit.
 *
 * The front passes its signals on to COMMAND. But COMMAND has already received a signal that kill(2) has sent
 * to the process group, or a service manager to each process of the unit; and a second SIGINT makes a server
 * exit without saving. The front cannot tell the two cases apart. So there is a witness: a process of ours in
 * the same group and unit that no user has a reason to signal. If the witness received the signal too, it was
 * sent to the group or unit.
 *
 * The same holds for SIGKILL. The front stands for COMMAND: so when the front ends before COMMAND, the
 * witness kills COMMAND. If the witness was killed as well, the signal was sent to the group or unit, and has
 * reached COMMAND. The witness has COMMAND's pidfd, so that it kills no other process.
 *
 * PR_SET_PDEATHSIG in COMMAND would be simpler. But COMMAND can see it and set its own, loses it when it
 * gains privileges, and would be killed when its parent ends on purpose (command_parent.h). The sampler could
 * kill COMMAND, but it may be stopped or busy for a second, and cannot tell whom the signal was sent to.
 */
#ifndef SAMPLER_CMD_RECORD_SIGNAL_WITNESS_H
#define SAMPLER_CMD_RECORD_SIGNAL_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct signal_witness {
	pid_t pid; /* -1: there is none, or it does not answer */
	int fd;    /* to the witness; never closed, since its end of file means the front's end */
	uint64_t
	    seen; /* bit n - 1: the witness received signal n, and signal_witness_saw() did not say so yet */
};

/* Forks the witness, which ends with the front: then it kills COMMAND, unless command_fd (COMMAND's pidfd)
 * says that COMMAND has ended. Call it with all signals blocked. If the fork fails, signal_witness_saw()
 * always returns false, and COMMAND is not killed. */
void signal_witness_start(struct signal_witness *witness, pid_t command, int command_fd);

/* Has the witness received this signal too since the last call? Waits a moment, for a sender that signals
 * a list of processes one after the other. */
bool signal_witness_saw(struct signal_witness *witness, int number);

#endif
