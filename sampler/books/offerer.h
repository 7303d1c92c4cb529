/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that has offered a region, as it was when the offer was taken: it may take its place in the
 * region and end before the next look.
 */
#ifndef SAMPLER_BOOKS_OFFERER_H
#define SAMPLER_BOOKS_OFFERER_H

#include "sampler/books/process.h"

struct offerer {
	struct target target;        /* pid, pidfd, name, title and maps */
	struct memory_bound *memory; /* as the run's */
	struct memory_share share;   /* of that: the maps */
	pid_t inner;                 /* its pid in its own pid namespace */
};

/* account: whose share of the memory the process takes; 0: its user's. NULL if the process is gone or
 * memory is short. */
struct offerer *offerer_read(
    pid_t pid, uint64_t account, struct modules *modules, struct memory_bound *memory);
void offerer_free(struct offerer *offerer); /* NULL is fine */

/* Sets run->offerer, unless the process has ended or has executed another program since. */
void offerer_find(struct program_run *run, pid_t pid, struct modules *modules);

/* The program run's offerer if it is this process, by the pid that the process says, and has ended; else
 * NULL. */
const struct offerer *offerer_that_ended(const struct process *process, pid_t told);

/* The maps that were read when the offer was taken, if that was just now and they are this process'; the
 * caller owns them. NULL: none. To read maps again opens each of their files. (What has changed since is
 * found as in any process: by a stack in no map.) */
struct maps *offerer_take_maps(const struct process *process, uint64_t *read_ns);

/* The process has books of its own now: if it is the offerer, the program run forgets what was read. */
void offerer_forget(const struct process *process);

#endif
