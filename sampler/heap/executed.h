/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that executes a program which does not load the library: nobody tells us of that one, and the
 * process would seem to be the old program to its end.
 *
 * Seen at a look, which finds another file executed (/proc/PID/exe), or by the kernel's record of the exec,
 * where the backend has such records for all processes (uprobe). What lives shorter than the time between two
 * looks may be missed without the latter.
 */
#ifndef SAMPLER_HEAP_EXECUTED_H
#define SAMPLER_HEAP_EXECUTED_H

#include "sampler/heap/process.h"

#include <stdint.h>

/* In target.unseen, between the program and the reason. */
#define EXECUTED_UNSEEN ", which is not profiled: "

/* Notes the file that a process executes when it is first watched, unless it has made way for another by
 * then: the image's own has our region mapped. Of a process without a pidfd, COMMAND's alone; any other that
 * lives has executed another program before it was found, which is noted. */
void executed_begin(struct process *process);

/* Looks whether it executes another now, and why the library is not in that: both go to target.unseen. */
void executed_look(struct process *process, uint64_t now_ns);

/* The kernel says that it has executed a program, by the first 15 characters of its name. */
void executed_note(struct process *process, const char *name, uint64_t time_ns);

#endif
