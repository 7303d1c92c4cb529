/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of memory that the process sets for itself. The kernel counts the addresses that we have mapped
 * against RLIMIT_AS, used or not: 130 MB at the default period, 525 MB at a period of 1. It counts the
 * private part of them (tables.h) against RLIMIT_DATA: 13 MB, or 195 MB. A process that limits itself to
 * less would get no memory any more, and no page of stack.
 *
 * So the library gives back what the new limit has no room for, by the rule of the start
 * (session_within). It unmaps the tables that are not in use yet. If that is not enough, it takes no
 * more samples and unmaps all the rest; what a free() may just be reading is replaced by zeroes, which
 * no limit of data counts. It does the second only if nobody can be using the memory: the process has
 * one thread, and that thread is not inside of a hook (a signal handler may set limits too). Otherwise
 * the memory stays, and leaves the program less of its limit.
 */
#ifndef PRELOAD_MEMORY_LIMIT_H
#define PRELOAD_MEMORY_LIMIT_H

/* The program has set a limit, perhaps its own. Makes system calls: prlimit, as the program has just done;
 * munmap if there is no room; and where the C library does not say that there is one thread, and no seccomp
 * filter is known of, it reads /proc/self/status. Keeps errno. */
void memory_limit_changed(int resource);

#endif
