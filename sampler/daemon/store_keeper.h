/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the store within its limits (`days`, a smaller `disk`, `free`) while nothing is published, which
 * otherwise does it: no process is profiled, everything is off. It looks in a child, since that waits for
 * disks, and the daemon does not.
 */
#ifndef SAMPLER_DAEMON_STORE_KEEPER_H
#define SAMPLER_DAEMON_STORE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct store;

/* All zero at first. */
struct store_keeper {
	pid_t child;      /* that looks; 0: none */
	uint64_t next_ns; /* there is none before */
};

/* To be called regularly: forks a child if the store wants a look. */
void store_keeper_tend(struct store_keeper *keeper, struct store *store, uint64_t now_ns);

/* A child of the daemon has ended; true: it was ours. */
bool store_keeper_reap(struct store_keeper *keeper, pid_t pid);

#endif
