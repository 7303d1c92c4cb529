/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Used while counters are put on the threads of a running process. Knows which threads have counters from us,
 * which have inherited them, and for which this is unknown. Pure: the caller tells it what was seen.
 *
 * A new thread inherits the counters that its creator has when the creation begins. When the creation ends,
 * the creator's trackers report a FORK, if there are trackers by then. So if the creation began before the
 * creator's counters were complete, its FORK looks like any other, but the new thread may have inherited all,
 * some, or none. A creator is settled once such a creation must be over. Its FORKs from then on are certain;
 * earlier ones are doubtful.
 */
#ifndef SAMPLER_PERF_LINEAGE_H
#define SAMPLER_PERF_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lineage_thread {
	uint64_t tid;
	uint64_t settled_ns; /* 0: not yet */
	bool ended;          /* before it got counters: it has none */
};

struct lineage_fork {
	pid_t tid, parent_tid;
	uint64_t time_ns;
	bool gone;
};

/* All zero is empty. */
struct lineage {
	struct lineage_thread *threads; /* by tid, ascending */
	size_t thread_count, thread_capacity;
	struct lineage_fork *forks;
	size_t fork_count, fork_capacity;
};

void lineage_free(struct lineage *lineage); /* also empties it */

/* Notes that all our counters are on the thread. Returns 0 or -ENOMEM. */
int lineage_add(struct lineage *lineage, pid_t tid);

/* Notes that the thread ended before it got counters: it is done, however long the kernel lists it. Returns 0
 * or -ENOMEM. */
int lineage_end(struct lineage *lineage, pid_t tid);

/* True if nothing is to be done for the thread: it was added, it ended, or a FORK told of it. */
bool lineage_knows(const struct lineage *lineage, pid_t tid);

/* Notes the FORK of a thread. Returns 0 or -ENOMEM. */
int lineage_fork(struct lineage *lineage, const struct lineage_fork *fork);

/* Notes that at now_ns the thread had no creation under way that began before the thread was added. */
void lineage_settle(struct lineage *lineage, pid_t tid, uint64_t now_ns);

/* The next thread that is not settled, from *at on, or 0. *at moves behind it. */
pid_t lineage_unsettled(const struct lineage *lineage, size_t *at);

/* A thread with counters from us that has created a thread for which it is unknown what it inherited, or 0.
 * The caller must close its counters, by which all heirs lose theirs, too, and then forget it. */
pid_t lineage_doubtful(const struct lineage *lineage);

/* Forgets a thread and its heirs: all are strangers again. */
void lineage_forget(struct lineage *lineage, pid_t tid);

/* A thread that has counters from us and has inherited others, or 0. It is no longer an added thread: the
 * caller must close our counters. */
pid_t lineage_take_double(struct lineage *lineage);

#endif
