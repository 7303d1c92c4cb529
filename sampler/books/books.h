/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books: all program runs and processes that are recorded, and the one way to go through them.
 *
 *   books_each_run (run, books)
 *           statement;
 *
 * The statement may add program runs or processes, which are not visited, and may remove its own
 * (intake/table.h).
 */
#ifndef SAMPLER_BOOKS_BOOKS_H
#define SAMPLER_BOOKS_BOOKS_H

#include "sampler/books/process.h"
#include "sampler/intake/table.h"

struct books {
	struct table runs;           /* by their region's key */
	struct table processes;      /* by pid; program_run.c adds and removes them */
	struct memory_bound *memory; /* of all processes; borrowed, NULL: no bound */
};

#define books_each_run(run, books)         table_each (struct program_run, run, &(books)->runs)
#define books_each_process(process, books) table_each (struct process, process, &(books)->processes)

/* Returns 0 or -ENOMEM. */
int books_add_run(struct books *books, struct program_run *run);

/* The caller then passes the program run to program_run_free(). */
void books_remove_run(struct program_run *run);

/* The program run whose region has this key, or this inode number; NULL if there is none. */
struct program_run *books_run_of_key(const struct books *books, uint64_t key);
struct program_run *books_run_of_region(const struct books *books, uint64_t ino);

/* Every program run must be removed before. */
void books_fini(struct books *books);

#endif
