/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of each process in the books.
 *
 *   found -> watched: its end is waited for, and the listener told
 *   it has ended, or executed another program -> its last samples are read, its books closed; the listener is
 *                                                told once
 *   its last profile is written -> released
 */
#ifndef SAMPLER_BOOKS_PROCESS_LIFE_H
#define SAMPLER_BOOKS_PROCESS_LIFE_H

#include "sampler/books/registry.h"

/* Does nothing if the process is watched already. */
void process_life_watch(struct registry *registry, struct process *process);

/* A process that had ended at our first look has no pidfd. A process for which no descriptor was left then is
 * looked at again. */
bool process_life_has_ended(struct registry *registry, struct process *process);

/* Closes the books: all samples taken before the end have been read by now. */
void process_life_close(struct registry *registry, struct process *process, enum target_end end, int status);

/* Notes which processes have ended; true if any has. Later, once their last samples have been read, closes
 * the books of those. */
bool process_life_note_ended(struct registry *registry);
void process_life_close_ended(struct registry *registry);

/* Closes the processes whose pid has executed the program of program run `by`. Reads their samples before,
 * all of them: they were written before that program run became ready. From rings they are read once in a
 * round; *drained says so. */
void process_life_close_executed(
    struct registry *registry, pid_t pid, const struct program_run *by, bool *drained);

/* The process has executed a program that has not reported to us, as target.unprofiled says. */
void process_life_close_unseen(struct registry *registry, struct process *process);

/* The last profile of a closed process is written. */
void process_life_release(struct registry *registry, struct process *process);

/* launch.pid has just been set: its program may have been found before. */
void process_life_know_command(struct registry *registry);

/* The living process with that pid; NULL if there is none. */
const struct process *process_life_find(const struct registry *registry, pid_t pid);

/* Processes that are recorded now: that execute the program which we know. */
size_t process_life_running(const struct registry *registry);

#endif
