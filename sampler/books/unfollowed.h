/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that forked children of an attached process execute: they do not have the library, and are not
 * followed. The profiles of the attached program run say how many there were, and name the last.
 *
 * The children of another process have the library, unless what they execute cannot load it (a static or
 * 32-bit program): the end of the session names those that live at a look.
 *
 * Where the kernel's records of all processes reach us (uprobe), every such program is seen. Elsewhere only
 * programs that live at a look are.
 */
#ifndef SAMPLER_BOOKS_UNFOLLOWED_H
#define SAMPLER_BOOKS_UNFOLLOWED_H

#include "sampler/books/missed.h"
#include "sampler/books/process.h"
#include "sampler/perf/record.h"

/* pid: the program run's own process. If it was attached to, children that are forked from now on count. */
void unfollowed_begin(struct program_run *run, pid_t pid);

/* Takes the kernel's records FORK, EXIT, and COMM by an exec. births: the program run of each forked
 * child, by pid; borrowed. */
void unfollowed_record(struct table *births, const struct table *processes, const struct record *record);

/* To be called now and then. by_records: the records of all processes reach us; otherwise looks at the
 * children that live. With -v, logs a line about new ones. */
void unfollowed_tend(struct program_run *run, bool by_records, int verbosity);

/* To be called twice a second: looks for children that execute a program without the library, of a program
 * run that was started with it. */
void unfollowed_look(struct program_run *run, struct missed *missed);

/* The program run is removed. */
void unfollowed_end(struct program_run *run, struct table *births);

#endif
