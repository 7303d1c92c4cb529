/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, in nanoseconds. Durations are measured by the monotonic clock. The real time is for the user.
 * */
#ifndef PPROF_TEXT_CLOCK_H
#define PPROF_TEXT_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CLOCK_NS_PER_S = 1000000000, CLOCK_NS_PER_MS = 1000000 };

/* CLOCK_MONOTONIC, which never goes back: also the clock of perf records and slots. */
uint64_t clock_now_ns(void);

/* CPU time of the calling thread. */
uint64_t clock_thread_cpu_ns(void);

/* CPU time of all threads of a process; 0 if the process does not exist. */
uint64_t clock_process_cpu_ns(pid_t pid);

/* Nanoseconds since 1970. */
int64_t clock_unix_ns(void);

/*
 * A real time for the user, local, in a format of strftime(3) that is a literal of the caller. Returns text,
 * which is "" if the time is 0 or less, or if text_bytes are too few.
 */
const char *clock_text(int64_t unix_ns, const char *format, char *text, size_t text_bytes);

#endif
