/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are not profiled: counted by reason and put into words; those that children of a process
 * execute are found; and the user is warned of programs that start containers.
 */
#ifndef SAMPLER_BOOKS_UNPROFILED_H
#define SAMPLER_BOOKS_UNPROFILED_H

#include "sampler/books/process.h"
#include "sampler/intake/region_pool.h"
#include "sampler/intake/target.h"
#include "sampler/perf/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct books;

/* All zero at first. Other files read the fields. */
struct unprofiled {
	uint64_t incomplete;       /* runs that claimed a region and never got ready */
	uint64_t declined;         /* runs that could not use their region */
	const char *declined_text; /* why, of the last one; NULL if there is none */
	uint64_t executed;         /* processes that executed a program that has not reported to us */
	char executed_text[TARGET_UNPROFILED_BYTES]; /* target.unprofiled of the last one */
	uint64_t unchosen;                           /* programs left out by --only and --exclude */
	char unchosen_title[TARGET_TITLE_BYTES];     /* of the last one */

	bool command_seen;                 /* COMMAND has loaded the library */
	bool command_unchosen;             /* COMMAND's last program was left out */
	const char *command_declined_text; /* why COMMAND's run did not use its region; NULL if it did */
};

void unprofiled_note_incomplete(struct unprofiled *unprofiled);
void unprofiled_note_declined(struct unprofiled *unprofiled, const char *why);
void unprofiled_note_executed(struct unprofiled *unprofiled, const char *unseen);
void unprofiled_note_unchosen(struct unprofiled *unprofiled, const char *title);

void unprofiled_note_command(struct unprofiled *unprofiled, bool unchosen);
void unprofiled_note_command_declined(struct unprofiled *unprofiled, const char *why);

/* Describes all of these in one line, with what the pool knows; "" if there are none, or without a pool: a
 * daemon's list has a reason for each process. pool may be NULL. */
void unprofiled_describe(
    const struct unprofiled *unprofiled, const struct region_pool *pool, char *text, size_t bytes);

/*
 * ---- programs that forked children of a process execute
 *
 * Of an attached process: they do not have the library, and are not followed. The profiles of the attached
 * program run say how many there were, and name the last. Where the kernel's records of all processes reach
 * us (uprobe), every such program is seen. Elsewhere only programs that live at a look are.
 *
 * Of any other process: a program without the library, or one that cannot reach us (a sandbox). They are
 * counted beside those that a process itself executes. Only programs that live at a look are seen.
 */

/* The program run was attached to: children that are forked from now on count. */
void unprofiled_children_begin(struct program_run *run);

/* Takes the kernel's records FORK, EXIT, and COMM by an exec. births: the program run of each forked
 * child, by pid; borrowed. */
void unprofiled_children_record(
    struct table *births, const struct table *processes, const struct record *record);

/* To be called now and then. by_records: the records of all processes reach us. verbose: logs a line about
 * new children of an attached process. */
void unprofiled_children_tend(
    struct program_run *run, struct unprofiled *unprofiled, bool by_records, bool verbose, uint64_t now_ns);

/* What PID executes is counted with its own reason. Its parent may not be looked at before PID has ended. */
void unprofiled_children_note_declined(const struct books *books, pid_t pid);

/* The program run is removed. */
void unprofiled_children_end(struct program_run *run, struct table *births);

/*
 * ---- programs that start containers
 *
 * The programs in a container get an environment without our library, and pids in a namespace of their own,
 * by which they would not find us. A profile of the starter alone would surprise a user who asked for the
 * container's.
 */

/* Whether a program of this name, with these arguments (as in /proc/PID/cmdline: a NUL behind each),
 * starts a container without our library. Not if an argument contains LD_PRELOAD: the user passes it on.
 * Pure. */
bool unprofiled_is_container_starter(const char *name, const char *arguments, size_t bytes);

/* Warns the user if the process is such a program. Returns whether it is. */
bool unprofiled_warn_of_container(pid_t pid);

#endif
