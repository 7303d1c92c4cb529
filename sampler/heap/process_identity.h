/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process the samples of a place are, and what it is called. All that the target says of itself is a
 * hint: its pid may be that of another namespace, its parent's or anybody's.
 */
#ifndef SAMPLER_HEAP_PROCESS_IDENTITY_H
#define SAMPLER_HEAP_PROCESS_IDENTITY_H

#include "sampler/heap/process.h"

#include <sys/types.h>

/* The pid by which the process calls itself, 0: none. The target may change it at any time. */
pid_t process_identity_told_pid(const struct process *process);

/* Makes it known by a pidfd. It has ended before if it is not, unless it is unsure. */
void process_identity_find(struct process *process, pid_t told);

/* Whether somebody who has that number here may have the image's region mapped; the same of somebody who has
 * it in a pid namespace of his own, which takes a search. */
bool process_identity_may_be_here(const struct image *image, pid_t told);
bool process_identity_may_be_anywhere(struct image *image, pid_t told);

/* The path of its executable, if that can be read; else the name stays as it is. */
void process_identity_read_name(struct process *process);

/* A program with several names (Debian's redis-server is a link to redis-check-rdb) gets the name by which it
 * was executed, if that name leads to the program; a script gets the name of its interpreter. The full
 * name is read too. */
void process_identity_read_title(struct process *process);

/* If the process has executed another program since process_identity_find, /proc describes that one. */
void process_identity_doubt_name(struct process *process);

/* Whether nobody has the image's region mapped whom we do not know, by a look at every process; false also if
 * that cannot be told, or is too early. */
bool process_identity_all_known(struct image *image);

#endif
