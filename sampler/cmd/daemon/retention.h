/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention: keeps the store within its limits (`days`, a smaller `disk`, `free`) while no profile is
 * written, since no process is profiled, or sampling is switched off. Otherwise each new profile does that.
 * A child process looks at the store, since that waits for disks. pprof/store/store_plan.h decides what
 * stays.
 */
#ifndef SAMPLER_CMD_DAEMON_RETENTION_H
#define SAMPLER_CMD_DAEMON_RETENTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct store;

/* All zero at first. */
struct retention {
	pid_t child;      /* the one that looks at the store; 0: none */
	uint64_t next_ns; /* the next child starts then, or later */
};

/* Forks a child if the store has to be looked at. Call it regularly. */
void retention_run(struct retention *retention, struct store *store, uint64_t now_ns);

/* A child of the daemon has ended. True if it was the one that looks at the store. */
bool retention_reap(struct retention *retention, pid_t pid);

#endif
