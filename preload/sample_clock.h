/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of samples: the kernel's monotonic clock, read from the memory that it shares with every process,
 * never by a system call.
 *
 * The precise clock reads the processor's time stamp counter, which a program may forbid itself
 * (prctl(PR_SET_TSC), seccomp's strict mode); reading it then ends the program with SIGSEGV. After such a
 * call the coarse clock is read instead, for good: the same time at the kernel's last tick. The kernel keeps
 * this for each thread and tells only the thread itself; so of what was forbidden before we were there, we
 * know what the thread that opens the clock knows. Where it must not ask, because a filter is in force, the
 * coarse clock is read too, unless the counter has just been read: the kernel's function for the coarse one
 * reads no counter.
 */
#ifndef PRELOAD_SAMPLE_CLOCK_H
#define PRELOAD_SAMPLE_CLOCK_H

#include <stdint.h>

/* CLOCK_ASK: no filter is in force, so the kernel may be asked whether the counter is forbidden, and the
 * libc's function may be used if the kernel shares none (valgrind hides it). CLOCK_READ: a filter is, but
 * this thread has just read the counter. CLOCK_UNKNOWN: a filter is. */
enum clock_counter { CLOCK_ASK, CLOCK_READ, CLOCK_UNKNOWN };

/* clock_id: CLOCK_MONOTONIC or CLOCK_MONOTONIC_COARSE, whichever the sampler has found to need no system
 * call. */
void sample_clock_open(int clock_id, enum clock_counter counter);

/* The same clock id, once it is known: of a process that was opened with CLOCK_MONOTONIC_COARSE. */
void sample_clock_choose(int clock_id);

/* Which one is read. */
int sample_clock_chosen(void);

/* The time stamp counter is about to be forbidden: the coarse clock from now on, in children too. */
void sample_clock_avoid_counter(void);

/* 0: unknown. */
uint64_t sample_clock_read_ns(void);

#endif
