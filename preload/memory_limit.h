/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of memory that the process sets for itself. The kernel counts the address space that we have mapped,
 * 125 MB at the default period and more at smaller ones, against RLIMIT_AS, and the private part of it, 13 MB
 * and more (tables.h), against RLIMIT_DATA, whether it is used or not. A process that limits itself below that would get no memory any more, and no
 * page of stack.
 *
 * So what the new limit has no room for, by the rule of the start (session_within), is given back: first the
 * tables that are not in use yet; then, if that is not enough, no more samples are taken, and all the rest is
 * unmapped. What free() may just be reading is replaced by zeroes, which no limit of data counts. That only
 * if nobody can be using it: the process has one thread, which is not inside of a hook
 * (a signal handler may set limits too). Otherwise it stays, and the limit is tighter by it.
 */
#ifndef PRELOAD_MEMORY_LIMIT_H
#define PRELOAD_MEMORY_LIMIT_H

/* The program has set a limit, perhaps its own. Makes system calls: prlimit, as the program has just done;
 * munmap if there is no room; and where the C library does not say that there is one thread, and no seccomp
 * filter is known of, it reads /proc/self/status. Keeps errno. */
void memory_limit_changed(int resource);

#endif
