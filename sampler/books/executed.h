/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that executes a program without the library: nothing tells us of that program, and the process
 * would seem to be the old program to its end.
 *
 * A look finds it, by another file in /proc/PID/exe. The kernel's record of the exec tells it too, where the
 * backend has such records of all processes (uprobe). Without the records, a program that lives shorter than
 * the time between two looks may be missed.
 */
#ifndef SAMPLER_BOOKS_EXECUTED_H
#define SAMPLER_BOOKS_EXECUTED_H

#include "sampler/books/process.h"

#include <stdint.h>

/* In target.unprofiled, between the program and the reason. */
#define EXECUTED_UNSEEN ", which is not profiled: "

/* The reason when an attached process executes a program. */
#define EXECUTED_UNFOLLOWED "what an attached process executes is not followed"

/* An executed program may take this long to load the library. */
enum { EXECUTED_LOADING_NS = 2000 * 1000000 };

/* Notes the file that a process executes when it is first watched: the program run's own program, which
 * has our region mapped, unless the process has executed another by then. Without a pidfd only COMMAND's
 * file is noted. Another living process without a pidfd executed a second program before it was found:
 * target.unprofiled says so. */
void executed_begin(struct process *process);

/* Looks whether the process executes another program now, and why the library is not in it: both go to
 * target.unprofiled. */
void executed_look(struct process *process, uint64_t now_ns);

/* Whether a process without our region still has the library where it was: a process that limits its own
 * memory unmaps the region (preload/memory_limit.h), and is counted there. */
bool executed_is_limited(const struct process *process);

/* Why the program that a process executes does not use a region of ours; NULL if that is not found. The
 * program has the same users and environment as the program that executed it. */
const char *executed_obstacle(pid_t pid);

/* The kernel says that the process has executed a program, by the first 15 characters of its name. */
void executed_note(struct process *process, const char *name, uint64_t time_ns);

/* Why the program that the process has executed, whose program run is counted, does not use its region;
 * NULL if that is not known. */
void executed_note_declined(struct process *process, const char *why);

#endif
