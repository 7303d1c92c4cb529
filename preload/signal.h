/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot signal (SIGUSR1 unless `record --signal` says otherwise).
 *
 * If the program leaves the signal at its default, which kills the process, we install a handler that
 * requests a snapshot. The program never sees it: functions that return a disposition (sigaction, signal and
 * older ones) report "default". If the program sets a disposition, the default included, that one replaces
 * our handler for good. An ignored signal stays ignored. A forked child inherits the handler, an executed
 * image does not.
 *
 * The handler is still visible in SigCgt of /proc/PID/status and to the raw system call.
 */
#ifndef PRELOAD_SIGNAL_H
#define PRELOAD_SIGNAL_H

/* In the constructor, also if there is no session: sigaction may first be called in a forked child of a
 * program with threads, where the loader's lock may be held by a thread that does not exist there. */
void signal_prepare(void);

/* When the region is mapped, before claim_open. number: of the signal. Installs the handler if the
 * disposition is the default, and tells request.h. */
void signal_open(int number);

#endif
