/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the store within its limits (`days`, a smaller `disk`, `free`) while no profile is written: no
 * process is profiled, or sampling is switched off. Otherwise each new profile does that. The keeper looks at
 * the store in a child process, since that waits for disks. pprof/store/store_plan.h decides what stays.
 */
#ifndef SAMPLER_CMD_DAEMON_STORE_KEEPER_H
#define SAMPLER_CMD_DAEMON_STORE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct store;

/* All zero at first. */
struct store_keeper {
	pid_t child;      /* the one that looks at the store; 0: none */
	uint64_t next_ns; /* the next child starts then, or later */
};

/* Forks a child if the store has to be looked at. Call it regularly. */
void store_keeper_run(struct store_keeper *keeper, struct store *store, uint64_t now_ns);

/* A child of the daemon has ended. True if it was the keeper's. */
bool store_keeper_reap(struct store_keeper *keeper, pid_t pid);

#endif
