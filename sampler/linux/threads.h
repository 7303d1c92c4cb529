/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of one process' threads. A name is kept after its thread has ended.
 *
 * A name is read when a thread's first sample arrives, a few milliseconds after the sample. Later names come
 * from the kernel's COMM records if perf events are open, and from reading all names again from time to time.
 *
 * A thread begins with the name of the thread that created it. Without records, that name counts only if the
 * thread still has it 50 ms after it was first seen: a thread that gave itself a name later may have ended.
 */
#ifndef SAMPLER_LINUX_THREADS_H
#define SAMPLER_LINUX_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct threads;

struct threads *threads_new(void); /* NULL: out of memory */
void threads_free(struct threads *threads);

/* Call it for each sample of a thread: reads the thread's name unless it is known. told: threads_call()
 * follows each change. */
void threads_see(struct threads *threads, pid_t pid, uint32_t tid, bool told);

/* The thread has changed its name. */
void threads_call(struct threads *threads, uint32_t tid, const char *name);

/* Reads the names of all living threads. */
void threads_read(struct threads *threads, pid_t pid);

/* The name of a thread, or NULL if unknown. `threads` may be NULL. */
const char *threads_name(const struct threads *threads, uint32_t tid);

#endif
