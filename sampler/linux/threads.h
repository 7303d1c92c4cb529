/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of one process' threads, kept when a thread has gone.
 *
 * A name is read at a thread's first sample, a few milliseconds after it was taken; changed names come with
 * the kernel's COMM records where perf events are open, and by reading all of them again now and then.
 */
#ifndef SAMPLER_LINUX_THREADS_H
#define SAMPLER_LINUX_THREADS_H

#include <stdint.h>
#include <sys/types.h>

struct threads;

struct threads *threads_new(void); /* NULL: out of memory */
void threads_free(struct threads *threads);

/* A sample of that thread has come: reads its name unless it is known. */
void threads_see(struct threads *threads, pid_t pid, uint32_t tid);

/* The thread calls itself so from now on. */
void threads_call(struct threads *threads, uint32_t tid, const char *name);

/* Reads the names of all threads that there are. */
void threads_read(struct threads *threads, pid_t pid);

/* NULL: unknown. `threads` may be NULL. */
const char *threads_name(const struct threads *threads, uint32_t tid);

#endif
