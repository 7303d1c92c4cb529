/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot signal (SIGUSR1 unless `record --signal` says otherwise).
 *
 * In COMMAND's own process, whatever it executes, or in every process if `record` was told so: if the program
 * leaves the signal at its default, which kills the process, we install a handler that requests a snapshot.
 * The program never sees it: functions that return a disposition (sigaction, signal and older ones) report
 * "default". If the program sets a disposition, the default included, that one replaces our handler for good.
 * An ignored signal stays ignored.
 *
 * Other uses of the signal work as without us: one that the process sends to itself ends it, and so does one
 * to a forked child of COMMAND, which inherits the handler. (A vfork child counts as its parent until it
 * executes.)
 *
 * The handler is still visible in SigCgt of /proc/PID/status and to the raw system call, and by EINTR of
 * calls that the kernel never restarts (poll, nanosleep).
 */
#ifndef PRELOAD_SIGNAL_H
#define PRELOAD_SIGNAL_H

#include <stdbool.h>

/* In the constructor, also if there is no session: sigaction may first be called in a forked child of a
 * program with threads, where the loader's lock may be held by a thread that does not exist there. */
void signal_prepare(void);

/* After claim_open. number: of the signal. Installs the handler if the disposition is the default.
 * in_children: forked children are asked for snapshots too. */
void signal_open(int number, bool in_children);

/* The process takes no more samples, and its region is about to be unmapped (memory_limit.h). If a snapshot
 * could be requested by the signal until now, one from outside does nothing from now on: it must not end a
 * program that it would not have ended before. */
void signal_leave(void);

#endif
