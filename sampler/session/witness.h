/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was a signal sent to us, or to everybody around us?
 *
 * The front passes on what is sent to it, for it stands in for COMMAND. But what kill(2) sends to the process
 * group, or a service manager to each process of the unit, COMMAND has had already, and a second SIGINT makes
 * a server exit without saving. Both look alike to the front. So there is a witness: a process of ours in the
 * same group and unit that nobody has a reason to signal. What it was sent too was sent to everybody.
 */
#ifndef SAMPLER_SESSION_WITNESS_H
#define SAMPLER_SESSION_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct witness {
	int fd;        /* to the witness; -1: there is none */
	uint64_t seen; /* bit n - 1: it was sent signal n, which nobody has asked for yet */
};

/* Forks the witness, which ends when witness->fd is closed. To be called with all signals blocked. If there
 * can be none, it will have seen nothing. */
void witness_start(struct witness *witness);

/* Has the witness been sent that signal too, since this was last asked? Waits a moment for a sender that goes
 * through a list of processes. */
bool witness_saw(struct witness *witness, int number);

#endif
