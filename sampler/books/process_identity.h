/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process the samples of a place are, and what it is called. All that the target says of itself is a
 * hint: its pid may be that of another namespace, its parent's or anybody's.
 */
#ifndef SAMPLER_BOOKS_PROCESS_IDENTITY_H
#define SAMPLER_BOOKS_PROCESS_IDENTITY_H

#include "sampler/books/process.h"

#include <sys/types.h>

/* The pid that the process says it has; 0 if none. The target may change it at any time. */
pid_t process_identity_told_pid(const struct process *process);

/* Sets the pid and opens a pidfd. Without a pidfd afterwards, the process had ended before, unless it is
 * unsure. The pid is 0 if the process has ended and said a number that cannot be its own here. */
void process_identity_find(struct process *process);

/* Whether a process with that pid here may have the program run's region mapped. may_be_anywhere: also a
 * process that has that pid in a pid namespace of its own, which takes a search. */
bool process_identity_may_be_here(const struct program_run *run, pid_t told);
bool process_identity_may_be_anywhere(struct program_run *run, pid_t told);

/* Sets the name to the path of the executable; keeps the old name if the path cannot be read. */
void process_identity_read_name(struct process *process);

/* Sets the title and the full name. A program with several names (Debian's redis-server is a link to
 * redis-check-rdb) gets the name by which it was executed, if that name leads to the program. A script
 * gets the name of its interpreter. */
void process_identity_read_title(struct process *process);

/* Takes the name back if the process has executed another program since process_identity_find(): then
 * /proc describes the other program. */
void process_identity_doubt_name(struct process *process);

/* Looks at every process. True if no unknown process has the program run's region mapped; false also if that
 * cannot be told, or if it is too early for a search. */
bool process_identity_all_known(struct program_run *run);

#endif
