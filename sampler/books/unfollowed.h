/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that forked children of a process execute, and that are not profiled.
 *
 * Of an attached process: they do not have the library, and are not followed. The profiles of the attached
 * program run say how many there were, and name the last. Where the kernel's records of all processes reach
 * us (uprobe), every such program is seen. Elsewhere only programs that live at a look are.
 *
 * Of any other process: a program without the library, or one that cannot reach us (a sandbox). They are
 * counted beside those that a process itself executes (unprofiled.h). Only programs that live at a look are
 * seen.
 */
#ifndef SAMPLER_BOOKS_UNFOLLOWED_H
#define SAMPLER_BOOKS_UNFOLLOWED_H

#include "sampler/books/process.h"
#include "sampler/books/unprofiled.h"
#include "sampler/perf/record.h"

/* The program run was attached to: children that are forked from now on count. */
void unfollowed_begin(struct program_run *run);

/* Takes the kernel's records FORK, EXIT, and COMM by an exec. births: the program run of each forked
 * child, by pid; borrowed. */
void unfollowed_record(struct table *births, const struct table *processes, const struct record *record);

/* To be called now and then. by_records: the records of all processes reach us. verbose: logs a line about
 * new children of an attached process. */
void unfollowed_tend(
    struct program_run *run, struct unprofiled *unprofiled, bool by_records, bool verbose, uint64_t now_ns);

/* The program run is removed. */
void unfollowed_end(struct program_run *run, struct table *births);

#endif
