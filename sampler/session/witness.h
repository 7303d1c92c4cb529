/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness tells whether a signal was sent to the front alone or to the whole group or unit.
 *
 * The front passes its signals on to COMMAND. But what kill(2) sends to the process group, or a service
 * manager to each process of the unit, COMMAND has already received, and a second SIGINT makes a server exit
 * without saving. The front cannot tell the two cases apart by itself. So there is a witness: a process of
 * ours in the same group and unit that no user has a reason to signal. A signal that it received too was sent
 * to the group or unit.
 */
#ifndef SAMPLER_SESSION_WITNESS_H
#define SAMPLER_SESSION_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct witness {
	int fd;        /* to the witness; -1: there is none */
	uint64_t seen; /* bit n - 1: it received signal n, and witness_saw has not reported it yet */
};

/* Forks the witness, which ends when witness->fd is closed. Call it with all signals blocked. If the fork
 * fails, witness_saw always returns false. */
void witness_start(struct witness *witness);

/* True if the witness has received that signal too since the last call. Waits a moment for a sender that
 * signals a list of processes one after the other. */
bool witness_saw(struct witness *witness, int number);

#endif
