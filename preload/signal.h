/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot signal (SIGUSR1 unless `record --signal` says otherwise).
 *
 * If the program leaves the signal at its default, which kills the process, we install a handler that asks
 * for a snapshot. The program never sees it: functions that return a disposition (sigaction, signal and older
 * ones) report "default". Whatever the program sets, default included, is set and stays, and our handler is
 * gone. Ignored stays ignored. The kernel does the rest: a forked child has the handler, an executed image
 * does not.
 *
 * What still shows: SigCgt in /proc/PID/status, and the raw system call.
 */
#ifndef PRELOAD_SIGNAL_H
#define PRELOAD_SIGNAL_H

/* In the constructor, also where there is no session: sigaction may first be called in a forked child of a
 * program with threads, where the loader's lock may be held by a thread that does not exist. */
void signal_prepare(void);

/* When the region is mapped, before claim_open. number: of the signal. Installs the handler if the
 * disposition is the default, and tells request.h. */
void signal_open(int number);

#endif
