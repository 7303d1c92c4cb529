/* SPDX-License-Identifier: Apache-2.0 */
/* Program runs, and the processes that appear in them. */
#ifndef SAMPLER_BOOKS_PROGRAM_RUN_H
#define SAMPLER_BOOKS_PROGRAM_RUN_H

#include "sampler/books/process.h"

/* Takes ownership of the region, also on failure. NULL if memory is short. */
struct program_run *program_run_new(struct region *region, uint64_t now_ns);
void program_run_free(struct program_run *run); /* closes the region; every process must be gone */

/* The pid of the program run's own process, as far as it is known; 0: it is not. */
pid_t program_run_pid(const struct program_run *run);

/* The process at a place. One that has claimed the place and is not known yet is looked up in /proc, and gets
 * books. NULL if there is none. (Known ones alone: run->places.) */
struct process *program_run_meet(struct program_run *run, uint32_t place, struct modules *modules);

/* Forgets a finished process. Its place in the region is released by region_release_place(), not here. */
void program_run_free_process(struct process *process);

/* The sampling period of the program run: the first one (0: the session's), and a later one. */
void program_run_begin_period(struct program_run *run, uint64_t period_bytes);
void program_run_set_period(struct program_run *run, uint64_t period_bytes);

/* Looks again for a process that is unsure. True if it has a pidfd now. */
bool program_run_look_again(struct process *process);

#endif
